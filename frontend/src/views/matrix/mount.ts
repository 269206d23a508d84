import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import { MatrixView } from "./MatrixView";
import matrix from "./matrix.css";

export const mountMatrixView = mounting(MatrixView, withBase(controls, matrix));
