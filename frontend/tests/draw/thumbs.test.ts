import { expect, test } from "vitest";
import type { RGB } from "../../src/draw/color";
import { gridPixels, liftThumbs, pooled, thumbLines, thumbMatrices, thumbShape, thumbsOf } from "../../src/draw/thumbs";
import { arrayValues } from "../../src/draw/values";
import { byteWeights } from "../../src/draw/weights";
import { exampleBytes } from "../../src/examples/page";

const GRID = { rows: 2, columns: 3, pitch: 12, size: 10 };
const RAMP = Uint32Array.from({ length: 256 }, (_, byte) => 1000 + byte);

test("each thumbnail stands in its place, with paper between", () => {
  const bytes = exampleBytes(6 * 5 * 7, 3);
  const thumbs = byteWeights(bytes, { heads: 6, queries: 5, keys: 7 });
  const { width, height } = gridPixels(GRID);
  expect([width, height]).toEqual([36, 24]);
  const pixels = new Uint32Array(thumbMatrices(thumbs, GRID, () => RAMP).buffer);
  expect(pixels[0]).toBe(1000 + Math.max(bytes[0]));
  expect(pixels[10]).toBe(0);
  expect(pixels[11 * width]).toBe(0);
  expect(pixels[(12 + 9) * width + 24 + 9]).toBe(1000 + bytes[5 * 35 + 4 * 7 + 6]);
});

test("a thumbnail smaller than its numbers shows the strongest under each pixel", () => {
  const bytes = new Uint8Array(48 * 40);
  bytes[47 * 40 + 39] = 200;
  bytes[0] = 90;
  const thumbs = byteWeights(bytes, { heads: 1, queries: 48, keys: 40 });
  const pixels = new Uint32Array(thumbMatrices(thumbs, { rows: 1, columns: 1, pitch: 9, size: 9 }, () => RAMP).buffer);
  expect([pixels[0], pixels[80]]).toEqual([1090, 1200]);
});

test("a thumbnail of multiples shows their mean, and an even head nothing at any size", () => {
  const keys = 439;
  const even = Math.round(255 * Math.sqrt(1 / keys));
  const bytes = new Uint8Array(48 * 48).fill(even);
  bytes.fill(4 * even, 0, 4);
  const thumbs = liftThumbs(() => bytes, { heads: 1, queries: 48, keys: 48 }, keys);
  for (const size of [12, 48, 90]) {
    const grid = { rows: 1, columns: 1, pitch: size, size };
    const pixels = new Uint32Array(thumbMatrices(thumbs, grid, () => RAMP).buffer);
    expect(pixels[0]).toBeGreaterThan(1000 + (size < 48 ? 60 : 160));
    expect(new Set(pixels.subarray(size * (size - 1)))).toEqual(new Set([1000]));
  }
});

test("lines have the colour of their head and leave the others alone", () => {
  const bytes = new Uint8Array(6 * 35);
  bytes[4 * 35] = 255;
  const thumbs = byteWeights(bytes, { heads: 6, queries: 5, keys: 7 });
  const colors: RGB[] = [
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
  ];
  const pixels = thumbLines(thumbs, GRID, colors);
  const drawn = [];
  for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 0) drawn.push(at / 4);
  expect(drawn.length).toBeGreaterThan(5);
  for (const pixel of drawn) {
    const [x, y] = [pixel % 36, Math.floor(pixel / 36)];
    expect(x >= 12 && x < 22 && y >= 12 && y < 22).toBe(true);
    expect([...pixels.subarray(4 * pixel, 4 * pixel + 3)]).toEqual([0, 255, 0]);
  }
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

test("thumbnails of both signs have the two colours, those that a grid has no cell for are not asked for", () => {
  const numbers = new Float32Array(5 * 6).fill(0);
  numbers[0] = 2;
  numbers[4 * 6 + 5] = -2;
  const thumbs = arrayValues(numbers, { heads: 5, queries: 2, keys: 3 }, true);
  const pixels = thumbLines(thumbs, GRID, [
    [0, 0, 255],
    [255, 128, 0],
  ]);
  const colorsIn = (left: number, top: number) => {
    const found = new Set<string>();
    for (let y = top; y < top + 10; y++) {
      for (let x = left; x < left + 10; x++) {
        const at = 4 * (y * 36 + x);
        if (pixels[at + 3] > 0) found.add(pixels.subarray(at, at + 3).join());
      }
    }
    return [...found];
  };
  expect(colorsIn(0, 0)).toEqual(["0,0,255"]);
  expect(colorsIn(12, 12)).toEqual(["255,128,0"]);
  expect(colorsIn(24, 12)).toEqual([]);
});

test("one colour stands for all thumbnails, however many are beside each other", () => {
  const thumbs = arrayValues(new Float32Array(3 * 6).fill(1), { heads: 3, queries: 2, keys: 3 }, false);
  const pixels = thumbLines(thumbs, { rows: 1, columns: 3, pitch: 12, size: 10 }, [[9, 80, 200]]);
  const found = new Set<string>();
  for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 0) found.add(pixels.subarray(at, at + 3).join());
  expect([...found]).toEqual(["9,80,200"]);
});
