import { whole } from "../../styles";
import live from "./live.css";

/** The styles of what only the page of a model has. */
export const liveStyles = whole(live);
