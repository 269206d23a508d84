import { mounting } from "../../parts/mount";
import controls from "../../styles/controls.css";
import evidence from "../../styles/evidence.css";
import grid from "../../styles/grid.css";
import { withBase } from "../../styles/index";
import loading from "../../styles/loading.css";
import { joined } from "../../styles/packed";
import compare from "../compare/compare.css";
import written from "../generation/written.css";
import head from "../head/head.css";
import links from "../links/links.css";
import long from "../long/long.css";
import matrix from "../matrix/matrix.css";
import neuron from "../neuron/neuron.css";
import one from "../one/one.css";
import overview from "../overview/overview.css";
import text from "../text/text.css";
import { App } from "./App";
import app from "./app.css";
import figure from "./figure.css";

/** The styles of all views and of the frame around them. */
export const styles = joined(
  withBase(
    controls,
    grid,
    evidence,
    loading,
    app,
    figure,
    head,
    links,
    long,
    matrix,
    neuron,
    overview,
    one,
    text,
    compare,
    written,
  ),
);

export const mountApp = mounting(App, styles);
