import type { RGB } from "./color";
import { exposure } from "./exposure";
import { ink } from "./ink";
import { collectLines } from "./lines";
import type { Ramp } from "./ramps";
import { cutoffsAt, headShares, SHARES } from "./share";
import { type LayerWeights, WEIGHT } from "./weights";

/** Where the thumbnails of a grid stand, in device pixels. */
export interface ThumbGrid {
  readonly rows: number;
  readonly columns: number;
  /** Distance of one thumbnail to the next. */
  readonly pitch: number;
  /** Side of a thumbnail. */
  readonly size: number;
  /** How many there are, where the last row is not full. */
  readonly count?: number;
}

/** Percent of each row's mass that is drawn as lines in a thumbnail. */
export const THUMB_SHARE = 80;

export function gridPixels({ rows, columns, pitch }: ThumbGrid): { width: number; height: number } {
  return { width: Math.round(columns * pitch), height: Math.round(rows * pitch) };
}

/** The thumbnails as matrices, one ramp for all: head number row * columns + column. */
export function thumbMatrices(thumbs: LayerWeights, grid: ThumbGrid, ramp: Ramp): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = gridPixels(grid);
  const pixels = new Uint32Array(width * height);
  const { queries, keys } = thumbs;
  eachThumb(grid, (head, left, top) => {
    const bytes = thumbs.bytes(head);
    for (let y = 0; y < grid.size; y++) {
      const row = blockOf(y, grid.size, queries);
      for (let x = 0; x < grid.size; x++) {
        const byte = strongest(bytes, keys, row, blockOf(x, grid.size, keys));
        pixels[(top + y) * width + left + x] = ramp[byte];
      }
    }
  });
  return new Uint8ClampedArray(pixels.buffer);
}

/** The thumbnails as lines, each head in its colour and all equally strong for the same weight. */
export function thumbLines(
  thumbs: LayerWeights,
  grid: ThumbGrid,
  colors: readonly RGB[],
): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = gridPixels(grid);
  const pixels = new Uint8ClampedArray(4 * width * height);
  const { queries, keys } = thumbs;
  const { size } = grid;
  const mask = { query: new Uint8Array(queries).fill(1), key: new Uint8Array(keys).fill(1) };
  const gain = exposure({ mass: queries, lineWidth: 1, height: size, aim: size < 48 ? 0.5 : 0.9, most: 1.6 });
  eachThumb(grid, (head, left, top) => {
    const cutoffs = cutoffsAt(headShares(thumbs, head, mask), SHARES.indexOf(THUMB_SHARE));
    const lines = collectLines(thumbs, [head], {
      height: size,
      query: { tokens: queries, pitch: size / queries, top: 0 },
      key: { tokens: keys, pitch: size / keys, top: 0 },
      mask,
      cutoffs: [cutoffs],
      spread: 0,
      reach: 1,
      gain,
      gamma: 0.8,
    });
    const thumb = ink(lines, [colors[head % colors.length]], { width: size, height: size, lineWidth: 1 });
    for (let y = 0; y < size; y++) {
      pixels.set(thumb.subarray(4 * y * size, 4 * (y + 1) * size), 4 * ((top + y) * width + left));
    }
  });
  return pixels;
}

function eachThumb(
  { rows, columns, pitch, count = rows * columns }: ThumbGrid,
  draw: (head: number, left: number, top: number) => void,
): void {
  for (let head = 0; head < count; head++) {
    draw(head, Math.round((head % columns) * pitch), Math.round(Math.floor(head / columns) * pitch));
  }
}

/** First and end of the tokens under one pixel. */
function blockOf(pixel: number, size: number, tokens: number): readonly [number, number] {
  const first = Math.floor((pixel * tokens) / size);
  return [first, Math.max(first + 1, Math.floor(((pixel + 1) * tokens) / size))];
}

function strongest(
  bytes: Uint8Array,
  keys: number,
  [firstRow, endRow]: readonly [number, number],
  [first, end]: readonly [number, number],
): number {
  let most = 0;
  for (let row = firstRow; row < endRow; row++) {
    for (let key = first; key < end; key++) most = Math.max(most, bytes[row * keys + key]);
  }
  return most;
}

/** The largest weight of a thumbnail. */
export function thumbPeak(thumbs: LayerWeights, head: number): number {
  return WEIGHT[thumbs.bytes(head).reduce((most, byte) => Math.max(most, byte), 0)];
}
