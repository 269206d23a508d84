import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import { HeadView } from "./HeadView";
import head from "./head.css";

export const mountHeadView = mounting(HeadView, withBase(controls, head));
