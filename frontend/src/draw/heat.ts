import type { Ramp } from "./color";
import { eachRun, type Visible } from "./scores";
import { type Block, strongest } from "./thumbs";
import { type LayerValues, topOf } from "./values";

/** Which part of a matrix is seen, in pixels. */
export interface View {
  /** First column and row at the edges; fractions allowed. */
  readonly left: number;
  readonly top: number;
  /** Pixels of one cell. */
  readonly cell: number;
}

export interface HeatColors {
  readonly ramp: Ramp;
  /** Ground and ink of cells that the scale has no colour for. */
  readonly ground: number;
  readonly ink: number;
  /** The byte that stands for nothing: 128 of signed ones. */
  readonly zero?: number;
}

/** RGBA pixels: each has the colour of the cell under it, or of several the strongest, so that none is lost. */
export function heat(
  { bytes, rows, columns }: Omit<Tile, "top">,
  { width, height, left, top, cell }: View & { readonly width: number; readonly height: number },
  { ramp, ground, ink, zero = 0 }: HeatColors,
  rules: LookRules,
): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint32Array(width * height);
  const sizes = Uint8Array.from({ length: 256 }, (_, byte) => Math.abs(byte - zero));
  const [queries, keys] = [blocksUnder(height, top, cell, rows), blocksUnder(width, left, cell, columns)];
  const looks = new Uint8Array(rules.keys);
  const empty = (look: number, x: number, y: number) => (PATTERNS[LOOKS[look]]?.(x, y) ? ink : ground);
  for (let y = 0; y < height; y++) {
    const query = queries[y];
    if (!query) continue;
    lookRow(rules, query[0], looks);
    for (let x = 0; x < width; x++) {
      const key = keys[x];
      if (!key) continue;
      const look = looks[key[0]];
      const at = cell < 1 ? strongest(bytes, sizes, columns, query, key) : query[0] * columns + key[0];
      pixels[y * width + x] = look === 0 ? ramp[bytes[at]] : empty(look, x, y);
    }
  }
  return new Uint8ClampedArray(pixels.buffer);
}

/** The columns (or rows) under each pixel: one, or all between it and the next; null beside the matrix. */
function blocksUnder(pixels: number, first: number, cell: number, count: number): (Block | null)[] {
  return Array.from({ length: pixels }, (_, pixel) => {
    const at = (part: number) => Math.floor(first + (pixel + part) / cell);
    const [from, to] = cell < 1 ? [at(0), at(1)] : [at(0.5), at(0.5) + 1];
    return from >= 0 && from < count ? [from, Math.min(count, to)] : null;
  });
}

/** A matrix as bytes, and the value that the last of them stands for. */
export interface Tile {
  readonly bytes: Uint8Array;
  readonly rows: number;
  readonly columns: number;
  readonly top: number;
}

/** The values of one head. */
export function tileOf(values: LayerValues, head: number): Tile {
  const { queries: rows, keys: columns } = values;
  return { bytes: values.bytes(head), rows, columns, top: topOf(values, head) };
}

/** Why a cell has no colour of the scale. A cell that is near zero has one: that of paper. */
export const LOOKS = ["shown", "masked", "out of window", "padded", "no attention", "excluded"] as const;
export type Look = (typeof LOOKS)[number];

/** What decides the look of each cell of a matrix. */
export interface LookRules {
  readonly queries: number;
  readonly keys: number;
  readonly visible: Visible | null;
  /** Keys before the visible ones are out of the window, not masked. */
  readonly sliding: boolean;
  /** 0 for queries that the reader left out. */
  readonly query: Uint8Array;
  /** The look that a key has whatever the query, as place in LOOKS; null where none has one. */
  readonly keyLooks: Uint8Array | null;
}

/** The looks of keys that are padding or that the reader left out. */
export function keyLooks(padded: Uint8Array, shown: Uint8Array): Uint8Array | null {
  const looks = padded.map((pad, key) => (pad ? LOOKS.indexOf("padded") : shown[key] ? 0 : LOOKS.indexOf("excluded")));
  return looks.some((look) => look > 0) ? looks : null;
}

/** The look of each key of a query, as place in LOOKS. */
export function lookRow(rules: LookRules, query: number, out: Uint8Array): Uint8Array {
  const { keys, visible, sliding, keyLooks } = rules;
  if (!rules.query[query]) return out.fill(LOOKS.indexOf("excluded"));
  let first = -1;
  out.fill(LOOKS.indexOf("masked"));
  eachRun(visible, query, keys, (start, end) => {
    if (first < 0) first = start;
    out.fill(0, start, end);
  });
  if (first < 0) out.fill(LOOKS.indexOf("no attention"));
  else if (sliding) out.fill(LOOKS.indexOf("out of window"), 0, first);
  if (keyLooks) for (let key = 0; key < keys; key++) if (keyLooks[key]) out[key] = keyLooks[key];
  return out;
}

/** The looks that a matrix has, but for "shown". */
export function looksOf(rules: LookRules): Look[] {
  const found = new Uint8Array(LOOKS.length);
  const row = new Uint8Array(rules.keys);
  for (let query = 0; query < rules.queries; query++) {
    lookRow(rules, query, row);
    for (let key = 0; key < row.length; key++) found[row[key]] = 1;
  }
  return LOOKS.filter((_, look) => look > 0 && found[look]);
}

/** Padding tokens, by the names that tokenizers give them. */
export function paddedTokens(pieces: readonly string[], special: readonly boolean[]): Uint8Array {
  return Uint8Array.from(pieces, (piece, token) => (special[token] && /^\W*pad\W*$/i.test(piece) ? 1 : 0));
}

/** Where looks have ink: each has a pattern of its own, so that colour alone need not tell. */
const PATTERNS: { readonly [Of in Look]?: (x: number, y: number) => boolean } = {
  "out of window": (x, y) => (x + y) % 7 === 0,
  padded: (x, y) => x % 5 === 0 && y % 5 === 0,
  "no attention": (_, y) => y % 5 === 0,
  excluded: (x, y) => (x + 6 * y) % 7 === 0,
};
