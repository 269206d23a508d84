import { BEND } from "../../contract/values";
import type { RGB } from "./color";
import type { Column, Focus, Mask } from "./tokens";
import { codeOf, type LayerValues } from "./values";

/** Lines from query to key, colour by colour; heights in pixels from the top of the picture. */
export interface Lines {
  /**
   * Where the lines of each colour begin in the arrays, and their end: one colour, or for values of both signs one for
   * those above 0 and one for those below.
   */
  readonly offsets: Uint32Array;
  /** Height at the query. */
  readonly starts: Float32Array;
  /** How much lower the key is. */
  readonly rises: Float32Array;
  readonly strengths: Float32Array;
}

export interface LineOptions {
  readonly height: number;
  readonly query: Column;
  readonly key: Column;
  readonly mask: Mask;
  /** The smallest level drawn of each query, at least 1; more than 255 draws nothing. */
  readonly cutoffs: Uint16Array;
  /** How far a line reaches beyond its middle. */
  readonly reach: number;
  /** The strength of each value: gain * size ** gamma, size as part of the largest that the head can have. */
  readonly gain: number;
  readonly gamma: number;
  /** Only the lines of these tokens. */
  readonly only?: Focus | null;
}

/** The cutoffs that draw every value inside a mask, or every one whose level is not smaller. */
export function everyLine(mask: Mask, least = 1): Uint16Array {
  return Uint16Array.from(mask.query, (shown) => (shown ? least : 256));
}

/** How much a picture of lines shows. */
export interface Drawn {
  readonly lines: number;
  /** Sum of what is drawn, as parts of the largest value. */
  readonly mass: number;
  /** Part of all inside the mask that is drawn. */
  readonly part: number;
}

/** What is drawn of a head where the levels of each query begin at its cutoff. */
export function drawnOf(values: LayerValues, head: number, mask: Mask, cutoffs: Uint16Array): Drawn {
  const { levels, sizes } = codeOf(values);
  const bytes = values.bytes(head);
  let [lines, mass, all] = [0, 0, 0];
  for (let query = 0, at = 0; query < values.queries; query++) {
    for (let key = 0; key < values.keys; key++, at++) {
      const level = levels[bytes[at]];
      if (level === 0 || !mask.key[key] || !mask.query[query]) continue;
      all += sizes[level];
      if (level < cutoffs[query]) continue;
      lines++;
      mass += sizes[level];
    }
  }
  return { lines, mass, part: all > 0 ? mass / all : 0 };
}

/** The level from which on a line is drawn of what has no even share: an eighth of the largest. */
export function leastLevel(values: LayerValues): number {
  return Math.max(
    1,
    codeOf(values).sizes.findIndex((size) => size >= 1 / 8),
  );
}

/** The lines of a head that touch the picture. */
export function collectLines(values: LayerValues, head: number, options: LineOptions): Lines {
  const { query: from, mask, only, cutoffs } = options;
  const made: Growing = { starts: [], rises: [], strengths: [] };
  const code = codeOf(values);
  const strength = code.parts.map((value) => options.gain * Math.abs(value) ** options.gamma);
  const bytes = values.bytes(head);
  const queries = only?.side === "query" ? only.tokens : [...Array(values.queries).keys()];
  const allowed =
    only?.side === "key" ? mask.key.map((shown, key) => (only.tokens.includes(key) ? shown : 0)) : mask.key;
  const ends: number[] = [];
  for (const sign of code.signed ? [1, -1] : [1]) {
    const levels = code.parts.map((value, byte) => (sign * value > 0 ? code.levels[byte] : 0));
    for (const query of queries) {
      if (cutoffs[query] > 255) continue;
      const start = from.top + (query + 0.5) * from.pitch;
      const row = bytes.subarray(query * values.keys, (query + 1) * values.keys);
      const isDrawn = (key: number) => levels[row[key]] >= cutoffs[query] && allowed[key] > 0;
      collectRow(row, start, isDrawn, options, made, strength);
    }
    ends.push(made.starts.length);
  }
  const [starts, rises, strengths] = [made.starts, made.rises, made.strengths].map((each) => Float32Array.from(each));
  return { offsets: Uint32Array.of(0, ...ends), starts, rises, strengths };
}

type Growing = Readonly<Record<Exclude<keyof Lines, "offsets">, number[]>>;

function collectRow(
  row: Uint8Array,
  start: number,
  isDrawn: (key: number) => boolean,
  { height, key: to, reach }: LineOptions,
  made: Growing,
  strength: Float32Array,
): void {
  for (let key = 0; key < row.length; key++) {
    if (!isDrawn(key)) continue;
    const end = to.top + (key + 0.5) * to.pitch;
    if (Math.max(start, end) < -reach || Math.min(start, end) > height + reach) continue;
    made.starts.push(start);
    made.rises.push(end - start);
    made.strengths.push(strength[row[key]]);
  }
}

/**
 * The ink raster: lines as thin S-curves whose coverage is summed exactly.
 *
 * A line covers in every pixel column one interval of heights. Each interval adds four numbers to a difference array
 * and one prefix sum gives the summed coverage of all lines of a head, with fractions of pixels and whatever their
 * order. The opacity of a pixel is 1 - exp(-coverage of all heads), as of transparent ink; its colour is the mean of
 * the heads' colours by squared coverage, so that the locally strongest head is the one that is seen.
 */
interface InkOptions {
  readonly width: number;
  readonly height: number;
  /** Thickness of a line, measured across it. */
  readonly lineWidth: number;
}

const FAINTEST = 1e-4;

/** RGBA pixels (not premultiplied), row by row. */
export function ink(lines: Lines, colors: readonly RGB[], options: InkOptions): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = options;
  const pixels = new Uint8ClampedArray(4 * width * height);
  const difference = new Float64Array((height + 2) * colors.length);
  const column = [difference, new Float64Array(colors.length), Float64Array.from(colors.flat())];
  for (let x = 0; x < width; x++) {
    const shape = curveAt(x, width);
    let [first, last] = NOTHING;
    for (let head = 0; head < colors.length; head++) {
      const touched = addLines(lines, head, shape, options, difference, colors.length);
      first = Math.min(first, touched[0]);
      last = Math.max(last, touched[1]);
    }
    writeColumn(column, pixels, x, width, [first, last]);
  }
  return pixels;
}

/** How far a curve has come at the middle of a pixel column (0 to 1), and its slope per pixel. */
type CurvePoint = { readonly progress: number; readonly slope: number };

export function curveAt(x: number, width: number): CurvePoint {
  const u = (x + 0.5) / width;
  return {
    progress: (1 - BEND) * u + BEND * u * u * (3 - 2 * u),
    slope: (1 - BEND + BEND * 6 * u * (1 - u)) / width,
  };
}

/** First and last pixel that some lines touch; last < first where none does. */
type Touched = readonly [first: number, last: number];

const NOTHING: Touched = [Number.POSITIVE_INFINITY, -1];

/**
 * Adds the lines of one head to a difference array, axes height + 2, head: after a prefix sum along the first, number
 * y is the coverage of pixel y, each line counted by its strength.
 */
export function addLines(
  { offsets, starts, rises, strengths }: Lines,
  index: number,
  { progress, slope }: CurvePoint,
  { height, lineWidth }: InkOptions,
  difference: Float64Array,
  heads: number,
): Touched {
  const slope2 = slope * slope;
  const half = lineWidth / 2;
  let first = height;
  let last = -1;
  for (let line = offsets[index]; line < offsets[index + 1]; line++) {
    const rise = rises[line];
    const middle = starts[line] + progress * rise;
    const reach = half * Math.sqrt(1 + slope2 * rise * rise);
    let upper = middle - reach;
    let lower = middle + reach;
    if (lower <= 0 || upper >= height) continue;
    if (upper < 0) upper = 0;
    if (lower > height) lower = height;
    const strength = strengths[line];
    const top = upper | 0;
    const bottom = lower | 0;
    const aboveUpper = (upper - top) * strength;
    const aboveLower = (lower - bottom) * strength;
    const atUpper = top * heads + index;
    const atLower = bottom * heads + index;
    difference[atUpper] += strength - aboveUpper;
    difference[atUpper + heads] += aboveUpper;
    difference[atLower] -= strength - aboveLower;
    difference[atLower + heads] -= aboveLower;
    if (top < first) first = top;
    if (bottom > last) last = bottom;
  }
  return [first, Math.min(last, height - 1)];
}

/**
 * One column of pixels, in which the coverage of each head is a sum that runs from the top to the bottom.
 *
 * @param difference - what the lines of each head add and take away at each height; empty again once it is written.
 * @param colors - axes head, red green blue.
 */
function writeColumn(
  [difference, running, colors]: readonly Float64Array[],
  pixels: Uint8ClampedArray,
  x: number,
  width: number,
  [first, last]: Touched,
): void {
  const heads = running.length;
  running.fill(0);
  for (let y = first; y <= last; y++) {
    let coverage = 0;
    let squares = 0;
    let red = 0;
    let green = 0;
    let blue = 0;
    // No head is skipped where it has no ink: a branch that goes now this way, now that costs more than the sums.
    for (let head = 0, from = y * heads, color = 0; head < heads; head++, color += 3) {
      const sum = running[head] + difference[from++];
      running[head] = sum;
      const square = sum * sum;
      coverage += sum;
      squares += square;
      red += square * colors[color];
      green += square * colors[color + 1];
      blue += square * colors[color + 2];
    }
    if (coverage < FAINTEST) continue;
    const at = 4 * (y * width + x);
    pixels[at] = red / squares;
    pixels[at + 1] = green / squares;
    pixels[at + 2] = blue / squares;
    pixels[at + 3] = 255 * opacity(coverage);
  }
  if (last >= first) difference.fill(0, first * heads, (last + 3) * heads);
}

const OPACITY_STEPS = 512;
const OPACITY = Float32Array.from({ length: 8 * OPACITY_STEPS }, (_, step) => 1 - Math.exp(-step / OPACITY_STEPS));

function opacity(coverage: number): number {
  return OPACITY[Math.min(OPACITY.length - 1, (coverage * OPACITY_STEPS) | 0)];
}

interface ExposureOptions {
  /** Sum of the strengths of all lines. */
  readonly mass: number;
  readonly lineWidth: number;
  /** Height over which the lines are spread. */
  readonly height: number;
  /** Mean coverage aimed at. */
  readonly aim: number;
  readonly most: number;
}

/** The gain that gives every picture the same mean darkness: one head or twelve, 20 tokens or 500. */
export function exposure({ mass, lineWidth, height, aim, most }: ExposureOptions): number {
  const coverage = (mass * lineWidth) / height;
  return coverage > 0 ? Math.min(most, aim / coverage) : most;
}
