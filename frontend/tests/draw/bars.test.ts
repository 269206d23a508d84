import { expect, test } from "vitest";
import { hangingBars } from "../../src/draw/bars";

const INK = [1, 2, 3] as const;

function lengths(pixels: Uint8ClampedArray, width: number): number[] {
  const filled = [...new Uint32Array(pixels.buffer)];
  return Array.from({ length: width }, (_, x) => filled.filter((pixel, at) => pixel && at % width === x).length);
}

test("bars hang from the upper edge, as long as their part of the largest", () => {
  const strip = { width: 6, height: 8, left: 0, cell: 2 };
  const pixels = hangingBars(Float32Array.of(1, 0, 4), 4, strip, INK);
  expect(lengths(pixels, 6)).toEqual([2, 2, 0, 0, 8, 8]);
  expect([...pixels.subarray(0, 4)]).toEqual([1, 2, 3, 255]);
});

test("where bars are narrower than a pixel the longest is seen, and none beyond the last", () => {
  const values = Float32Array.from({ length: 40 }, (_, at) => (at === 13 ? 1 : 0));
  const few = hangingBars(values, 1, { width: 12, height: 4, left: 0, cell: 0.25 }, INK);
  expect(lengths(few, 12)).toEqual([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
});

test("a strip moves with the matrix; nothing is longest of nothing", () => {
  const strip = { width: 4, height: 4, left: 1.5, cell: 2 };
  expect(lengths(hangingBars(Float32Array.of(4, 0, 2, 4), 4, strip, INK), 4)).toEqual([0, 2, 2, 4]);
  expect(lengths(hangingBars(new Float32Array(4), 0, strip, INK), 4)).toEqual([0, 0, 0, 0]);
});
