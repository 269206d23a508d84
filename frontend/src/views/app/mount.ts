import { mounting } from "../../parts/mount";
import { App } from "./App";
import { styles } from "./styles";

export const mountApp = mounting(App, styles);
