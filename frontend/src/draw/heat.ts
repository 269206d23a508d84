import { type LookRules, lookRow, patternAt } from "./looks";
import type { Level } from "./pyramid";
import type { Ramp } from "./ramps";

/** The part of a matrix that is seen, in device pixels. */
export interface Viewport {
  readonly width: number;
  readonly height: number;
  /** First column and row at the left and upper edge; fractions allowed. */
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
  view: Viewport,
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
  const empty = (look: number, x: number, y: number) => (patternAt(look, x, y) ? ink : ground);
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
