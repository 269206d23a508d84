import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import evidence from "../../styles/evidence.css";
import grid from "../../styles/grid.css";
import head from "../head/head.css";
import matrix from "../matrix/matrix.css";
import neuron from "../neuron/neuron.css";
import pair from "../pair/pair.css";
import scatter from "../scatter/scatter.css";
import text from "../text/text.css";
import app from "./app.css";
import inspector from "./inspector.css";

/** The styles of all views and of the frame around them. */
export const styles = withBase(controls, grid, evidence, app, inspector, head, matrix, neuron, pair, scatter, text);
