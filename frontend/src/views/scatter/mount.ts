import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import evidence from "../../styles/evidence.css";
import { ScatterView } from "./ScatterView";
import scatter from "./scatter.css";

export const mountScatterView = mounting(ScatterView, withBase(controls, evidence, scatter));
