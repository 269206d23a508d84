import { fromBase64, gunzip } from "../source/source";

/** All sheets of a bundle, as the build packs them (tools/css.mjs). */
declare const CSS_PACKED: string | undefined;

/** Their text; none where nothing is built. */
export const styles =
  typeof CSS_PACKED === "undefined" ? "" : new TextDecoder().decode(await gunzip(fromBase64(CSS_PACKED)));
