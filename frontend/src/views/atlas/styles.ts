import controls from "../../styles/controls.css";
import evidence from "../../styles/evidence.css";
import { withBase } from "../../styles/index";
import sketch from "../../styles/sketch.css";
import atlas from "./atlas.css";
import comparison from "./comparison/comparison.css";
import tree from "./headvis/tree.css";

export const atlasStyles = withBase(controls, evidence, sketch, atlas, comparison, tree);
