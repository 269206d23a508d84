import type { RGB } from "./color";
import { pixelOf, type Ramp } from "./ramps";

/** Where the columns of a strip of bars stand, in device pixels. */
export interface BarStrip {
  readonly width: number;
  readonly height: number;
  /** First column at the left edge; fractions allowed. */
  readonly left: number;
  /** Pixels of one column. */
  readonly cell: number;
}

/** Bars that hang from the upper edge, one for each value; where a pixel has several, the longest. */
export function hangingBars(
  values: Float32Array,
  most: number,
  { width, height, left, cell }: BarStrip,
  color: RGB,
): Uint8ClampedArray<ArrayBuffer> {
  const pixels: Ramp = new Uint32Array(width * height);
  const ink = pixelOf(color);
  for (let x = 0; x < width; x++) {
    const first = Math.floor(left + x / cell);
    const end = Math.max(first + 1, Math.floor(left + (x + 1) / cell));
    const longest = values.subarray(first, end).reduce((a, b) => Math.max(a, b), 0);
    const gap = cell >= 6 && left + (x + 1) / cell >= first + 1 - 1 / cell;
    const length = gap || most === 0 ? 0 : Math.round((height * longest) / most);
    for (let y = 0; y < length; y++) pixels[y * width + x] = ink;
  }
  return new Uint8ClampedArray(pixels.buffer as ArrayBuffer);
}
