import { fromBase64, gunzip } from "../source/source";

/** All sheets of a bundle, as the build packs them (tools/css.mjs). */
declare const CSS_PACKED: string | undefined;

const sheets: readonly string[] =
  typeof CSS_PACKED === "undefined" ? [] : JSON.parse(new TextDecoder().decode(await gunzip(fromBase64(CSS_PACKED))));

/** The text of style sheets one after the other; where nothing is built, each of them is its text. */
export function joined(given: readonly string[]): string {
  return given.map((sheet) => sheets[Number(sheet)] ?? sheet).join("\n");
}
