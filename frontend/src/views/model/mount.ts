import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import evidence from "../../styles/evidence.css";
import grid from "../../styles/grid.css";
import { ModelView } from "./ModelView";

export const mountModelView = mounting(ModelView, withBase(controls, grid, evidence));
