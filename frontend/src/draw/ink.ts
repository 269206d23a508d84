import type { RGB } from "./color";
import type { Lines } from "./lines";

/**
 * The ink raster: lines as thin S-curves whose coverage is summed exactly.
 *
 * A line covers in every pixel column one interval of heights. Each interval adds four numbers to a difference array
 * and one prefix sum gives the summed coverage of all lines of a head, with fractions of pixels and whatever their
 * order. The opacity of a pixel is 1 - exp(-coverage of all heads), as of transparent ink; its colour is the mean of
 * the heads' colours by squared coverage, so that the locally strongest head is the one that is seen.
 */
export interface InkOptions {
  readonly width: number;
  readonly height: number;
  /** Thickness of a line, measured across it. */
  readonly lineWidth: number;
}

/** 0 is a straight line, 1 leaves both tokens level. */
const BEND = 0.62;
const FAINTEST = 1e-4;

/** RGBA pixels (not premultiplied), row by row. */
export function ink(lines: Lines, colors: readonly RGB[], options: InkOptions): Uint8ClampedArray<ArrayBuffer> {
  const { width, height } = options;
  const pixels = new Uint8ClampedArray(4 * width * height);
  const difference = new Float32Array(height + 2);
  const column = new InkColumn(height);
  for (let x = 0; x < width; x++) {
    const shape = curveAt(x, width);
    column.clear();
    colors.forEach((color, index) => {
      const touched = addLines(lines, index, shape, options, difference);
      column.add(difference, touched, color);
    });
    column.write(pixels, x, width);
  }
  return pixels;
}

/** How far a curve has come at the middle of a pixel column (0 to 1), and its slope per pixel. */
export interface CurvePoint {
  readonly progress: number;
  readonly slope: number;
}

export function curveAt(x: number, width: number): CurvePoint {
  const u = (x + 0.5) / width;
  return {
    progress: (1 - BEND) * u + BEND * u * u * (3 - 2 * u),
    slope: (1 - BEND + BEND * 6 * u * (1 - u)) / width,
  };
}

/** First and last pixel that some lines touch; last < first where none does. */
export type Touched = readonly [first: number, last: number];

/**
 * Adds the lines of one head to a difference array of height + 2 numbers: after a prefix sum, number y is the
 * coverage of pixel y, each line counted by its strength.
 */
export function addLines(
  { offsets, starts, rises, strengths }: Lines,
  index: number,
  { progress, slope }: CurvePoint,
  { height, lineWidth }: InkOptions,
  difference: Float32Array,
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
    difference[top] += strength - aboveUpper;
    difference[top + 1] += aboveUpper;
    difference[bottom] -= strength - aboveLower;
    difference[bottom + 1] -= aboveLower;
    if (top < first) first = top;
    if (bottom > last) last = bottom;
  }
  return [first, Math.min(last, height - 1)];
}

/** One column of pixels while the heads are added to it. */
class InkColumn {
  /** For each height: coverage, its squares, and the red, green and blue of the heads by squared coverage. */
  readonly #sums: Float32Array;
  #first: number;
  #last = -1;

  constructor(readonly height: number) {
    this.#sums = new Float32Array(5 * height);
    this.#first = height;
  }

  clear(): void {
    if (this.#last >= this.#first) this.#sums.fill(0, 5 * this.#first, 5 * (this.#last + 1));
    this.#first = this.height;
    this.#last = -1;
  }

  /** Adds the coverage of one head and leaves the difference array empty. */
  add(difference: Float32Array, [first, last]: Touched, [red, green, blue]: RGB): void {
    if (last < first) return;
    const sums = this.#sums;
    let sum = 0;
    for (let y = first; y <= last; y++) {
      sum += difference[y];
      if (sum < FAINTEST) continue;
      const square = sum * sum;
      const at = 5 * y;
      sums[at] += sum;
      sums[at + 1] += square;
      sums[at + 2] += square * red;
      sums[at + 3] += square * green;
      sums[at + 4] += square * blue;
    }
    difference.fill(0, first, last + 3);
    if (first < this.#first) this.#first = first;
    if (last > this.#last) this.#last = last;
  }

  write(pixels: Uint8ClampedArray, x: number, width: number): void {
    const sums = this.#sums;
    for (let y = this.#first; y <= this.#last; y++) {
      const squares = sums[5 * y + 1];
      if (squares === 0) continue;
      const at = 4 * (y * width + x);
      pixels[at] = sums[5 * y + 2] / squares;
      pixels[at + 1] = sums[5 * y + 3] / squares;
      pixels[at + 2] = sums[5 * y + 4] / squares;
      pixels[at + 3] = 255 * opacity(sums[5 * y]);
    }
  }
}

const OPACITY_STEPS = 512;
const OPACITY = Float32Array.from({ length: 8 * OPACITY_STEPS }, (_, step) => 1 - Math.exp(-step / OPACITY_STEPS));

function opacity(coverage: number): number {
  return OPACITY[Math.min(OPACITY.length - 1, (coverage * OPACITY_STEPS) | 0)];
}
