import { expect, test } from "vitest";
import type { RGB } from "../../src/draw/color";
import { liftThumbs, paintMatrix, pooled, thumbLines, thumbShape, thumbsOf } from "../../src/draw/thumbs";
import { arrayValues, type LayerValues } from "../../src/draw/values";

import { exampleBytes } from "../examples/page";
import { byteWeights } from "./parts";

const RAMP = Uint32Array.from({ length: 256 }, (_, byte) => 1000 + byte);

/** The pixels of a tile that is as large as its picture. */
function painted(thumbs: LayerValues, size: number): Uint32Array {
  const pixels = new Uint32Array(size * size);
  paintMatrix({ pixels, width: size }, { head: 0, left: 0, top: 0, size }, thumbs, RAMP);
  return pixels;
}

test("a thumbnail stands in its place and leaves the rest of a picture alone", () => {
  const bytes = exampleBytes(6 * 5 * 7, 3);
  const thumbs = byteWeights(bytes, { heads: 6, queries: 5, keys: 7 });
  const pixels = new Uint32Array(36 * 24);
  paintMatrix({ pixels, width: 36 }, { head: 5, left: 24, top: 12, size: 10 }, thumbs, RAMP);
  expect(pixels[(12 + 9) * 36 + 24 + 9]).toBe(1000 + bytes[5 * 35 + 4 * 7 + 6]);
  expect(pixels.filter((pixel) => pixel > 0)).toHaveLength(100);
});

test("a thumbnail smaller than its numbers shows the strongest under each pixel", () => {
  const bytes = new Uint8Array(48 * 40);
  bytes[47 * 40 + 39] = 200;
  bytes[0] = 90;
  const thumbs = byteWeights(bytes, { heads: 1, queries: 48, keys: 40 });
  const pixels = painted(thumbs, 9);
  expect([pixels[0], pixels[80]]).toEqual([1090, 1200]);
});

test("a thumbnail of multiples shows their mean, and an even head nothing at any size", () => {
  const keys = 439;
  const even = Math.round(255 * Math.sqrt(1 / keys));
  const bytes = new Uint8Array(48 * 48).fill(even);
  bytes.fill(4 * even, 0, 4);
  const thumbs = liftThumbs(() => bytes, { heads: 1, queries: 48, keys: 48 }, keys);
  for (const size of [12, 48, 90]) {
    const pixels = painted(thumbs, size);
    expect(pixels[0]).toBeGreaterThan(1000 + (size < 48 ? 60 : 160));
    expect(new Set(pixels.subarray(size * (size - 1)))).toEqual(new Set([1000]));
  }
});

/** The colours of a thumbnail of lines, without paper. */
function colorsOf(thumbs: LayerValues, head: number, colors: readonly RGB[]): string[] {
  const pixels = thumbLines(thumbs, head, { width: 10, height: 10 }, colors);
  const found = new Set<string>();
  for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 0) found.add(pixels.subarray(at, at + 3).join());
  return [...found];
}

test("lines have the colour of their head", () => {
  const bytes = new Uint8Array(6 * 35);
  bytes[4 * 35] = 255;
  const thumbs = byteWeights(bytes, { heads: 6, queries: 5, keys: 7 });
  expect(colorsOf(thumbs, 4, [[9, 80, 200]])).toEqual(["9,80,200"]);
  expect(colorsOf(thumbs, 3, [[9, 80, 200]])).toEqual([]);
});

test("a thumbnail of a quantity holds the value of largest size of each block, with its sign", () => {
  const numbers = new Float32Array(2 * 100 * 60);
  numbers[99 * 60 + 59] = -5;
  numbers[99 * 60 + 58] = 3;
  const values = arrayValues(numbers, { heads: 2, queries: 100, keys: 60 }, true);
  const shape = thumbShape(values);
  expect(shape).toEqual({ queries: 48, keys: 48 });
  const small = pooled(values, 0);
  expect(small.at(-1)).toBeCloseTo(-5, 5);
  const thumbs = thumbsOf([small, pooled(values, 1)], shape, true);
  expect(thumbs.heads).toBe(2);
  expect([...thumbs.row(0, 47)].at(-1)).toBeCloseTo(-5, 5);
});

test("thumbnails of both signs have the two colours", () => {
  const numbers = new Float32Array(5 * 6).fill(0);
  numbers[0] = 2;
  numbers[4 * 6 + 5] = -2;
  const thumbs = arrayValues(numbers, { heads: 5, queries: 2, keys: 3 }, true);
  const signs: RGB[] = [
    [0, 0, 255],
    [255, 128, 0],
  ];
  expect(colorsOf(thumbs, 0, signs)).toEqual(["0,0,255"]);
  expect(colorsOf(thumbs, 4, signs)).toEqual(["255,128,0"]);
  expect(colorsOf(thumbs, 3, signs)).toEqual([]);
});
