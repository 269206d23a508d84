import type { RGB } from "./color";
import { exposure } from "./exposure";
import { ink } from "./ink";
import { collectLines } from "./lines";
import type { Mask } from "./mask";
import type { Ramp } from "./ramps";
import { cutoffsAt, drawn, headShares, SHARES } from "./share";
import { arrayValues, codeOf, type LayerValues, sharedTop, topOf } from "./values";
import { headWeights, type LayerWeights, toByte } from "./weights";

/** Where the thumbnails of a grid stand, in device pixels. */
export interface ThumbGrid {
  readonly rows: number;
  readonly columns: number;
  /** Distance of one thumbnail to the next. */
  readonly pitch: number;
  /** The line of each row, where there are lines without thumbnails; else they are the same. */
  readonly lines?: readonly number[];
  /** Side of a thumbnail. */
  readonly size: number;
}

/** Percent of each row's mass that is drawn as lines in a thumbnail. */
export const THUMB_SHARE = 80;

export function gridPixels({ rows, columns, pitch }: ThumbGrid): { width: number; height: number } {
  return { width: Math.round(columns * pitch), height: Math.round(rows * pitch) };
}

/** The thumbnails as matrices, one ramp for all: head number row * columns + column. */
export function thumbMatrices(thumbs: LayerValues, grid: ThumbGrid, ramp: Ramp): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = gridPixels(grid);
  const pixels = new Uint32Array(width * height);
  eachThumb(grid, thumbs.heads, (head, left, top) => {
    paintMatrix({ pixels, width }, { head, left, top, size: grid.size }, thumbs, ramp);
  });
  return new Uint8ClampedArray(pixels.buffer);
}

/** A square of a picture that holds the matrix of one head, in device pixels. */
export interface MatrixTile {
  readonly head: number;
  readonly left: number;
  readonly top: number;
  readonly size: number;
}

/** One head as a matrix; where a pixel holds several values it shows the largest. */
export function paintMatrix(
  { pixels, width }: { readonly pixels: Uint32Array; readonly width: number },
  { head, left, top, size }: MatrixTile,
  thumbs: LayerValues,
  ramp: Ramp,
): void {
  const { queries, keys } = thumbs;
  const { levels } = codeOf(thumbs);
  const bytes = thumbs.bytes(head);
  const columns = Array.from({ length: size }, (_, x) => blockOf(x, size, keys));
  for (let y = 0; y < size; y++) {
    const row = blockOf(y, size, queries);
    for (let x = 0; x < size; x++) {
      const byte = bytes[strongest(bytes, levels, keys, row, columns[x])];
      pixels[(top + y) * width + left + x] = ramp[byte];
    }
  }
}

/** The thumbnails as lines, all equally strong for the same value: in the head's colour, or in those of both signs. */
export function thumbLines(
  thumbs: LayerValues,
  grid: ThumbGrid,
  colors: readonly RGB[],
): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = gridPixels(grid);
  const pixels = new Uint8ClampedArray(4 * width * height);
  const { queries, keys } = thumbs;
  const { size } = grid;
  const mask = { query: new Uint8Array(queries).fill(1), key: new Uint8Array(keys).fill(1) };
  const { signed } = codeOf(thumbs);
  const gain = thumbs.free
    ? freeGain(thumbs, grid, mask)
    : exposure({ mass: queries, lineWidth: 1, height: size, aim: size < 48 ? 0.5 : 0.9, most: 1.6 });
  eachThumb(grid, thumbs.heads, (head, left, top) => {
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
    const used = signed ? colors : [colors[head % colors.length]];
    const thumb = ink(lines, used, { width: size, height: size, lineWidth: 1 });
    for (let y = 0; y < size; y++) {
      pixels.set(thumb.subarray(4 * y * size, 4 * (y + 1) * size), 4 * ((top + y) * width + left));
    }
  });
  return pixels;
}

/** The gain that draws a thumbnail as dark as those of weights are, on the mean of all. */
function freeGain(thumbs: LayerValues, { size }: ThumbGrid, mask: Mask): number {
  const heads = [...Array(thumbs.heads).keys()];
  const shares = heads.map((head) => headShares(thumbs, head, mask));
  const mass = drawn(shares, SHARES.indexOf(THUMB_SHARE)).mass / sharedTop(thumbs, heads) / thumbs.heads;
  return exposure({ mass, lineWidth: 1, height: size, aim: size < 48 ? 0.35 : 0.6, most: 6 });
}

function eachThumb(
  { columns, pitch, lines }: ThumbGrid,
  count: number,
  draw: (head: number, left: number, top: number) => void,
): void {
  for (let head = 0; head < count; head++) {
    const row = Math.floor(head / columns);
    draw(head, Math.round((head % columns) * pitch), Math.round((lines?.[row] ?? row) * pitch));
  }
}

/** First and end of the tokens under one pixel. */
function blockOf(pixel: number, size: number, tokens: number): readonly [number, number] {
  const first = Math.floor((pixel * tokens) / size);
  return [first, Math.max(first + 1, Math.floor(((pixel + 1) * tokens) / size))];
}

/** Where the largest byte of a block stands. */
function strongest(
  bytes: Uint8Array,
  levels: Uint8Array,
  keys: number,
  [firstRow, endRow]: readonly [number, number],
  [first, end]: readonly [number, number],
): number {
  let most = firstRow * keys + first;
  for (let row = firstRow; row < endRow; row++) {
    for (let at = row * keys + first; at < row * keys + end; at++) {
      if (levels[bytes[at]] > levels[bytes[most]]) most = at;
    }
  }
  return most;
}

/** The value of largest size in a thumbnail. */
export function thumbPeak(thumbs: LayerValues, head: number): number {
  const { levels, parts } = codeOf(thumbs);
  const peak = thumbs.bytes(head).reduce((most, byte) => (levels[byte] > levels[most] ? byte : most));
  return parts[peak] * topOf(thumbs, head);
}

/** Rows and columns of a thumbnail, at most. */
const MOST_SIDE = 48;

/** The matrix of a head made small: of each block the value of largest size. */
export function pooled(values: LayerValues, head: number): Float32Array {
  const { levels, parts } = codeOf(values);
  const [bytes, top, { queries, keys }] = [values.bytes(head), topOf(values, head), thumbShape(values)];
  return Float32Array.from({ length: queries * keys }, (_, at) => {
    const row = blockOf(Math.floor(at / keys), queries, values.queries);
    return parts[bytes[strongest(bytes, levels, values.keys, row, blockOf(at % keys, keys, values.keys))]] * top;
  });
}

/** How large a thumbnail of a matrix is. */
export function thumbShape({ queries, keys }: { queries: number; keys: number }) {
  return { queries: Math.min(MOST_SIDE, queries), keys: Math.min(MOST_SIDE, keys) };
}

/** Thumbnails beside each other, on one scale. */
export function thumbsOf(
  made: readonly Float32Array[],
  shape: { queries: number; keys: number },
  signed: boolean,
): LayerValues {
  const size = shape.queries * shape.keys;
  const numbers = new Float32Array(made.length * size);
  made.forEach((thumb, at) => {
    numbers.set(thumb, at * size);
  });
  return arrayValues(numbers, { ...shape, heads: made.length }, signed);
}

/** The same of weights, whose scale ends at 1. */
export function weightsOf(made: readonly Float32Array[], shape: { queries: number; keys: number }): LayerWeights {
  const bytes = made.map((thumb) => Uint8Array.from(thumb, toByte));
  return headWeights((head) => bytes[head], { ...shape, heads: made.length });
}
