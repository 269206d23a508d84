import { joined } from "../../styles/packed";
import sketch from "../../styles/sketch.css";
import live from "./live.css";

/** The styles of what only the page of a model has. */
export const liveStyles = joined([sketch, live]);
