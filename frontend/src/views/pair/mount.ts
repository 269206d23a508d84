import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import { PairView } from "./PairView";
import pair from "./pair.css";

export const mountPairView = mounting(PairView, withBase(controls, pair));
