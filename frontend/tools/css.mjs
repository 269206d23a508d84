// Style sheets in the order in which a bundle has them: what adapts to width and preferences comes last, so that it wins.
import { readdir, readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const BASE = ["styles/page", "styles/tokens", "styles/controls"];
const ADAPT = "styles/adapt";
const VIEWS = [
  ...["styles/grid", "styles/evidence", "styles/loading", "views/app/app", "views/app/figure", "views/head/head"],
  ...["views/links/links", "views/long/long", "views/matrix/matrix", "views/neuron/neuron", "views/overview/overview"],
  ...["views/one/one", "views/text/text", "views/compare/compare", "views/generation/written"],
  "views/why/why",
];
const PAGE = [...BASE, ...VIEWS, ADAPT];
/** The sheets of each bundle; that of a model has more than that of a page. */
export const SHEETS = {
  page: PAGE,
  model: [...PAGE, "styles/sketch", "views/answer/answer", "views/live/live"],
  atlas: [...BASE, "styles/evidence", "styles/sketch", "views/atlas/atlas", ADAPT],
  answer: [...BASE, "views/why/why", "views/answer/answer", ADAPT],
};

const SOURCES = new URL("../src/", import.meta.url);

/**
 * The sheets as one text, minified.
 *
 * @throws where a sheet is in no list: no page would have it.
 */
export async function cssText(sheets) {
  const there = (await readdir(SOURCES, { recursive: true })).filter((name) => name.endsWith(".css"));
  const lost = there.filter((name) => !Object.values(SHEETS).flat().includes(name.replace(".css", "")));
  if (lost.length > 0) throw new Error(`${lost} is in none of SHEETS in tools/css.mjs; say which bundles have it.`);
  const texts = sheets.map((name) => readFile(new URL(`${name}.css`, SOURCES), "utf8"));
  const { code } = await esbuild.transform((await Promise.all(texts)).join("\n"), { loader: "css", minify: true });
  return code.trim();
}

/** The same packed, as src/styles/packed.ts reads it: sheets are a sixth of a bundle, and say the same often. */
export async function packedCss(sheets) {
  return gzipSync(await cssText(sheets), { level: 9 }).toString("base64");
}
