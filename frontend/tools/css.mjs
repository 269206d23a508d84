// Style sheets as text, minified, with what they repeat in one list: they are a sixth of a bundle, and say the same often.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const SOURCES = fileURLToPath(new URL("../src/", import.meta.url));
/** Each of these is a part that is repeated often; no style sheet has them. `src/styles/index.ts` reads them. */
const SHORT = "BDEGJKLOPQTVWXZ$&_~'";
/** One of these stands before the sign of a part that is repeated less; no style sheet has them, either. */
const LEADS = "^?";
/** Between two parts in the list of them. */
const BETWEEN = "|";
const SIGNS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&*+,-./:;=?@_~";
/** Longest part, in pieces of text. */
const LONGEST = 12;

/** The plugin, and what the bundle has to be told to read the sheets again; of the sheets that it has. */
export async function crushedCss(has = () => true) {
  const all = await readdir(SOURCES, { recursive: true });
  const names = all.filter((name) => name.endsWith(".css") && has(name)).sort();
  const sheets = new Map();
  for (const name of names) sheets.set(join(SOURCES, name), await minified(join(SOURCES, name)));
  const before = new Map(sheets);
  const parts = crush(sheets);
  for (const [path, sheet] of sheets) {
    if (restored(sheet, parts) !== before.get(path)) throw new Error(`${path} cannot be read again from its parts.`);
  }
  const plugin = {
    name: "crushed-css",
    setup(build) {
      build.onLoad({ filter: /\.css$/ }, ({ path }) => ({ contents: sheets.get(path), loader: "text" }));
    },
  };
  return {
    plugin,
    define: {
      CSS_PARTS: JSON.stringify(parts.join(BETWEEN)),
      CSS_SIGNS: JSON.stringify(SIGNS),
      CSS_SHORT: JSON.stringify(SHORT),
    },
  };
}

async function minified(path) {
  const { code } = await esbuild.transform(await readFile(path, "utf8"), { loader: "css", minify: true });
  const taken = [...(SHORT + LEADS + BETWEEN)].filter((sign) => code.includes(sign));
  if (taken.length > 0) throw new Error(`${path} contains ${taken.join(" ")}, which stand for repeated parts.`);
  return code.trim();
}

const CODES = [...SHORT, ...[...LEADS].flatMap((lead) => [...SIGNS].map((sign) => lead + sign))];

/** What `src/styles/index.ts` makes of it. */
function restored(sheet, parts) {
  return sheet.replace(/[?^].|[A-Z$&_~']/g, (code) =>
    CODES.includes(code) ? restored(parts[CODES.indexOf(code)], parts) : code,
  );
}

/** Takes what saves most out of all sheets, again and again; gives the parts, in the order of their signs. */
function crush(sheets) {
  const parts = [];
  const lists = new Map([...sheets].map(([path, text]) => [path, text.match(/[^;{},:()\s]+|[;{},:()\s]/g) ?? []]));
  for (const code of CODES) {
    const best = bestPart([...lists.values()], code.length);
    if (!best) break;
    parts.push(best.join(""));
    for (const [path, pieces] of lists) lists.set(path, replaced(pieces, best, code));
  }
  for (const [path, pieces] of lists) sheets.set(path, pieces.join(""));
  return parts;
}

function bestPart(lists, code) {
  const counts = new Map();
  for (const pieces of lists) countParts(pieces, counts);
  let [best, most] = [null, 0];
  for (const [text, { count, pieces, first, length }] of counts) {
    const saved = count * (text.length - code) - text.length - BETWEEN.length;
    if (saved > most) [best, most] = [pieces.slice(first, first + length), saved];
  }
  return best;
}

/** Counts all that stands in a list of pieces; what overlaps with itself counts once. */
function countParts(pieces, counts) {
  for (let first = 0; first < pieces.length; first++) {
    let text = "";
    for (let length = 1; length <= Math.min(LONGEST, pieces.length - first); length++) {
      text += pieces[first + length - 1];
      if (text.length > 1) countPart(text, { pieces, first, length }, counts);
    }
  }
}

function countPart(text, place, counts) {
  const known = counts.get(text);
  if (known?.pieces === place.pieces && place.first < known.first + known.length) return;
  counts.set(text, { ...place, count: (known?.count ?? 0) + 1 });
}

function replaced(pieces, part, code) {
  const made = [];
  for (let at = 0; at < pieces.length; ) {
    const here = part.every((piece, step) => pieces[at + step] === piece);
    made.push(here ? code : pieces[at]);
    at += here ? part.length : 1;
  }
  return made;
}
