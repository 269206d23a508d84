import { mounting } from "../../parts/mount";
import { withBase } from "../../styles";
import controls from "../../styles/controls.css";
import { TextView } from "./TextView";
import text from "./text.css";

export const mountTextView = mounting(TextView, withBase(controls, text));
