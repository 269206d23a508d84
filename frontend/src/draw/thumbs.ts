import type { Ramp, RGB } from "./color";
import { collectLines, drawnOf, everyLine, exposure, ink, leastLevel } from "./lines";
import { arrayValues, codeOf, type LayerValues, liftByte, topLift, topOf } from "./values";
import { headWeights, toByte, WEIGHT, type WeightShape } from "./weights";

/** Small pictures of multiples of the even share, as parts of the most that one of so many keys can have. */
export interface LiftThumbs extends LayerValues {
  readonly of: number;
}

/** Bytes of multiples of the even share, axes head, query, key, of a text with so many keys. */
export function liftThumbs(bytesOf: (head: number) => Uint8Array, shape: WeightShape, of: number): LiftThumbs {
  const { row } = headWeights(bytesOf, shape);
  const lifts = (head: number, query: number) => row(head, query).map((part) => of * part);
  return { ...shape, of, free: true, top: () => of, bytes: bytesOf, row: lifts };
}

/** The byte of the even share: it is rounded as all are. */
function evenByte({ of }: LiftThumbs): number {
  return toByte(1 / of);
}

function isLifts(thumbs: LayerValues): thumbs is LiftThumbs {
  return "of" in thumbs;
}

/** A square of a picture that holds the matrix of one head, in device pixels. */
export type MatrixTile = { readonly head: number; readonly left: number; readonly top: number; readonly size: number };

/** One head as a matrix; where a pixel holds several values it shows their mean, or the largest where they have signs. */
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
  const byteOf = isLifts(thumbs)
    ? meanLift(thumbs, bytes)
    : (row: Block, column: Block) => bytes[strongest(bytes, levels, keys, row, column)];
  let drawn = -1;
  for (let y = 0; y < size; y++) {
    const row = blockOf(y, size, queries);
    const start = (top + y) * width + left;
    // Rows of the same query are one picture.
    if (row[0] === drawn) pixels.copyWithin(start, start - width, start - width + size);
    else for (let x = 0; x < size; x++) pixels[start + x] = ramp[byteOf(row, columns[x])];
    drawn = row[0];
  }
}

/** The colour of a block of multiples: that of their mean, so that an even head is pale at any size. */
function meanLift(thumbs: LiftThumbs, bytes: Uint8Array): (row: Block, column: Block) => number {
  const even = WEIGHT[evenByte(thumbs)];
  const top = topLift(thumbs.of);
  const single = Uint8Array.from(WEIGHT, (weight) => liftByte(weight / even, top));
  return ([firstRow, endRow], [first, end]) => {
    if (endRow - firstRow === 1 && end - first === 1) return single[bytes[firstRow * thumbs.keys + first]];
    let sum = 0;
    for (let row = firstRow; row < endRow; row++) {
      for (let at = row * thumbs.keys + first; at < row * thumbs.keys + end; at++) sum += WEIGHT[bytes[at]];
    }
    return liftByte(sum / ((endRow - firstRow) * (end - first)) / even, top);
  };
}

/** First and end of the tokens under one pixel. */
export type Block = readonly [first: number, end: number];

/** One head as lines: in its colour, or in those of both signs. */
export function thumbLines(
  thumbs: LayerValues,
  head: number,
  { width, height, lineWidth = 1 }: { readonly width: number; readonly height: number; readonly lineWidth?: number },
  colors: readonly RGB[],
): Uint8ClampedArray<ArrayBuffer> {
  const { queries, keys } = thumbs;
  const mask = { query: new Uint8Array(queries).fill(1), key: new Uint8Array(keys).fill(1) };
  const cutoffs = everyLine(mask, isLifts(thumbs) ? evenByte(thumbs) + 1 : leastLevel(thumbs));
  const { mass } = drawnOf(thumbs, head, mask, cutoffs);
  const all = { mass: mass / topOf(thumbs, head) || 1e-6, lineWidth, height };
  const lines = collectLines(thumbs, head, {
    height,
    query: { tokens: queries, pitch: height / queries, top: 0 },
    key: { tokens: keys, pitch: height / keys, top: 0 },
    mask,
    cutoffs,
    reach: lineWidth,
    gain: exposure(isLifts(thumbs) ? { ...all, mass, aim: 0.5, most: 6 } : { ...all, aim: 0.4, most: 6 }),
    gamma: 0.8,
  });
  return ink(lines, colors, { width, height, lineWidth });
}

/** First and end of the tokens under one pixel. */
function blockOf(pixel: number, size: number, tokens: number): Block {
  const first = Math.floor((pixel * tokens) / size);
  return [first, Math.max(first + 1, Math.floor(((pixel + 1) * tokens) / size))];
}

/** Where the largest byte of a block stands. */
export function strongest(
  bytes: Uint8Array,
  levels: Uint8Array,
  keys: number,
  [firstRow, endRow]: Block,
  [first, end]: Block,
): number {
  let most = firstRow * keys + first;
  for (let row = firstRow; row < endRow; row++) {
    for (let at = row * keys + first; at < row * keys + end; at++) {
      if (levels[bytes[at]] > levels[bytes[most]]) most = at;
    }
  }
  return most;
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
