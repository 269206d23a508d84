// Names of our own that are long and stand often in a bundle: each is a letter there.
import { readdir, readFile } from "node:fs/promises";

/** No name of a browser, of a library, of a message or of a word that is shown: `shortNames` refuses most of these. */
const NAMES = [
  ...["shownStack", "onChoose", "choose", "preview", "layerNumber", "cutoffs", "room", "ramp", "starts"],
  ...["geometry", "levels", "ticks", "lineArea", "searching", "pins", "systemDark", "softCap"],
  ...["wordOf", "maps", "longest", "density", "pieceAt", "even", "thumbsLeft", "hasPieces"],
  ...["bounds", "raster", "merged", "overall", "middles", "strengths", "keepSinks", "mutedPart"],
  ...["productAt", "peeked", "keyLooks", "byOffset", "printing", "lineInks", "loadHead"],
  ...["onRemove", "onMove", "keyAt", "pieceStack", "nowStack"],
  ...["wordsAt", "isRecord", "colors", "rank", "past", "ahead", "fail", "rises", "strength", "ground"],
  ...["pointed", "scales", "sums", "sameTop", "pitch", "standIn", "ofPieces", "loadedKinds"],
  ...["besides", "asShown", "store", "valueNorms", "further", "evenAttention", "patchRows", "pinnedPair"],
  ...["receivedOfAll", "evens", "lifts", "raised", "colorOf", "opens", "cells"],
];

/** What is said of a message may hold any word. */
const COMMENT = /\/\*[\s\S]*?\*\//g;

/**
 * What esbuild is told.
 *
 * @throws where a name is a text somewhere, or one of what comes from outside: it would be two names then.
 */
export async function shortNames(root) {
  const all = [];
  for (const part of ["contract/", "types/", "src/"]) {
    for (const name of await readdir(new URL(part, root), { recursive: true })) all.push(part + name);
  }
  // The bundle of an atlas keeps all names.
  const files = all.filter((name) => /\.tsx?$/.test(name) && !name.startsWith("src/views/atlas/"));
  for (const file of files) {
    const text = (await readFile(new URL(file, root), "utf8")).replaceAll(COMMENT, "");
    const outside = /^(contract|types|src\/shells)\//.test(file);
    for (const name of NAMES) {
      const wrong = outside ? new RegExp(`\\b${name}\\b`) : new RegExp(`["'\`]${name}["'\`]|\\bdataset\\.${name}\\b`);
      if (wrong.test(text)) throw new Error(`${file} has ${name}, which cannot be shortened: take it out of NAMES.`);
    }
  }
  return new RegExp(`^(?:${NAMES.join("|")})$`);
}
