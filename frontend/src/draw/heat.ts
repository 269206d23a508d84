import type { Ramp } from "./color";
import { eachRun, type Visible } from "./scores";
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
}

/** RGBA pixels: each looks its cell up, in the level whose cells are about as large as a pixel. */
export function heat(
  levels: readonly Level[],
  view: View & { readonly width: number; readonly height: number },
  { ramp, ground, ink }: HeatColors,
  rules: LookRules,
): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = view;
  const pixels = new Uint32Array(width * height);
  const number = levelFor(view.cell, levels.length);
  const { bytes, rows, columns } = levels[number];
  const cells = cellsUnder(width, view.left, view.cell, levels[0].columns);
  const queries = cellsUnder(height, view.top, view.cell, levels[0].rows);
  const looks = new Uint8Array(rules.keys);
  const empty = (look: number, x: number, y: number) => (PATTERNS[LOOKS[look]]?.(x, y) ? ink : ground);
  let looked = -1;
  for (let y = 0; y < height; y++) {
    const query = queries[y];
    if (query < 0) continue;
    if (query !== looked) lookRow(rules, query, looks);
    looked = query;
    const row = Math.min(rows - 1, query >> number) * columns;
    for (let x = 0; x < width && cells[x] >= 0; x++) {
      const key = cells[x];
      const look = looks[key];
      pixels[y * width + x] = look === 0 ? ramp[bytes[row + (key >> number)]] : empty(look, x, y);
    }
  }
  return new Uint8ClampedArray(pixels.buffer);
}

/** The level whose cells are at least one pixel large. */
export function levelFor(cell: number, levels: number): number {
  return Math.min(levels - 1, Math.max(0, Math.ceil(Math.log2(1 / cell))));
}

/** The column (or row) under the middle of each pixel, -1 beside the matrix. */
function cellsUnder(pixels: number, first: number, cell: number, count: number): Int32Array {
  return Int32Array.from({ length: pixels }, (_, pixel) => {
    const at = Math.floor(first + (pixel + 0.5) / cell);
    return at >= 0 && at < count ? at : -1;
  });
}

/** A matrix of bytes at one size. */
export type Level = { readonly bytes: Uint8Array; readonly rows: number; readonly columns: number };

/** Below this side no smaller level is made: a screen shows it whole. */
const SMALLEST = 64;

/**
 * The matrix, and ever smaller ones in which each byte is the strongest of four, so that no strong one is lost: furthest
 * from `zero`, which is 128 for signed bytes.
 */
export function pyramid(base: Level, zero = 0): Level[] {
  const levels = [base];
  for (let top = base; Math.max(top.rows, top.columns) > SMALLEST; top = levels[levels.length - 1]) {
    levels.push(halved(top, zero));
  }
  return levels;
}

function halved({ bytes, rows, columns }: Level, zero: number): Level {
  const [newRows, newColumns] = [Math.ceil(rows / 2), Math.ceil(columns / 2)];
  const made = new Uint8Array(newRows * newColumns);
  for (let row = 0; row < newRows; row++) {
    const upper = 2 * row * columns;
    const lower = 2 * row + 1 < rows ? upper + columns : upper;
    for (let column = 0; column < newColumns; column++) {
      const left = 2 * column;
      const right = left + 1 < columns ? left + 1 : left;
      const top = stronger(bytes[upper + left], bytes[upper + right], zero);
      const bottom = stronger(bytes[lower + left], bytes[lower + right], zero);
      made[row * newColumns + column] = stronger(top, bottom, zero);
    }
  }
  return { bytes: made, rows: newRows, columns: newColumns };
}

function stronger(a: number, b: number, zero: number): number {
  return Math.abs(a - zero) >= Math.abs(b - zero) ? a : b;
}

/** A matrix as bytes, and the value that the last of them stands for. */
export interface Tile extends Level {
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
