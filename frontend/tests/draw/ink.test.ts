import { expect, test } from "vitest";
import type { RGB } from "../../src/draw/color";
import { addLines, curveAt, ink, type Lines } from "../../src/draw/lines";

const OPTIONS = { width: 24, height: 40, lineWidth: 1.5 };
const BLUE: RGB = [20, 60, 240];
const RED: RGB = [220, 30, 10];

/** Lines of one or more heads, each [start, end, strength]. */
function lines(...heads: [number, number, number][][]): Lines {
  const all = heads.flat();
  const offsets = Uint32Array.from([0, ...heads.map((_, head) => heads.slice(0, head + 1).flat().length)]);
  return {
    offsets,
    starts: Float32Array.from(all, ([start]) => start),
    rises: Float32Array.from(all, ([start, end]) => end - start),
    strengths: Float32Array.from(all, ([, , strength]) => strength),
  };
}

const TANGLE: [number, number, number][] = Array.from({ length: 30 }, (_, i) => [
  ((i * 37) % 53) - 6,
  ((i * 61) % 57) - 8,
  0.1 + ((i * 7) % 10) / 9,
]);

function coverage(some: Lines, x: number, head = 0): Float64Array {
  const heads = some.offsets.length - 1;
  const difference = new Float64Array(heads * (OPTIONS.height + 2));
  addLines(some, head, curveAt(x, OPTIONS.width), OPTIONS, difference, heads);
  let sum = 0;
  return Float64Array.from({ length: OPTIONS.height + 2 }, (_, y) => {
    sum += difference[y * heads + head];
    return sum;
  });
}

/** Where a line runs in a pixel column: upper and lower edge. */
function edges([start, end]: [number, number, number], x: number): [number, number] {
  const { progress, slope } = curveAt(x, OPTIONS.width);
  const middle = start + progress * (end - start);
  const reach = (OPTIONS.lineWidth / 2) * Math.hypot(1, slope * (end - start));
  return [middle - reach, middle + reach];
}

const overlap = (a: number, b: number, from: number, to: number) => Math.max(0, Math.min(b, to) - Math.max(a, from));

test("coverage is exact in every pixel", () => {
  for (let x = 0; x < OPTIONS.width; x++) {
    const found = coverage(lines(TANGLE), x);
    for (let y = 0; y < OPTIONS.height; y++) {
      const wanted = TANGLE.reduce((sum, line) => sum + line[2] * overlap(...edges(line, x), y, y + 1), 0);
      expect(found[y], `pixel ${x}, ${y}`).toBeCloseTo(wanted, 4);
    }
  }
});

test("each of several heads has its own coverage", () => {
  const both = lines(TANGLE.slice(0, 9), TANGLE.slice(9));
  for (const x of [0, 13, 23]) {
    expect(coverage(both, x, 0)).toEqual(coverage(lines(TANGLE.slice(0, 9)), x));
    expect(coverage(both, x, 1)).toEqual(coverage(lines(TANGLE.slice(9)), x));
  }
});

test("no ink is lost or made: a column holds the visible length of its lines", () => {
  for (const x of [0, 11, 23]) {
    const found = coverage(lines(TANGLE), x).reduce((a, b) => a + b);
    const wanted = TANGLE.reduce((sum, line) => sum + line[2] * overlap(...edges(line, x), 0, OPTIONS.height), 0);
    expect(found).toBeCloseTo(wanted, 3);
  }
});

test("the order of lines does not matter", () => {
  const forth = ink(lines(TANGLE.slice(0, 20), TANGLE.slice(20)), [BLUE, RED], OPTIONS);
  const back = ink(lines(TANGLE.slice(0, 20).reverse(), TANGLE.slice(20).reverse()), [BLUE, RED], OPTIONS);
  forth.forEach((channel, at) => {
    expect(Math.abs(channel - back[at])).toBeLessThanOrEqual(1);
  });
});

test("the order of heads does not matter", () => {
  const one = ink(lines(TANGLE.slice(0, 9), TANGLE.slice(9)), [BLUE, RED], OPTIONS);
  const other = ink(lines(TANGLE.slice(9), TANGLE.slice(0, 9)), [RED, BLUE], OPTIONS);
  one.forEach((channel, at) => {
    expect(Math.abs(channel - other[at])).toBeLessThanOrEqual(1);
  });
});

test("a level line stands at its height, in its colour, and nowhere else", () => {
  const pixels = ink(lines([[10, 10, 50]]), [BLUE], { ...OPTIONS, lineWidth: 2 });
  for (let y = 0; y < OPTIONS.height; y++) {
    for (let x = 0; x < OPTIONS.width; x++) {
      const at = 4 * (y * OPTIONS.width + x);
      const wanted = y === 9 || y === 10 ? [...BLUE, 255] : [0, 0, 0, 0];
      for (const channel of [0, 1, 2, 3]) {
        expect(Math.abs(pixels[at + channel] - wanted[channel]), `pixel ${x}, ${y}`).toBeLessThanOrEqual(1);
      }
    }
  }
});

test("a line ends at the heights of its tokens and runs level there", () => {
  const first = curveAt(0, 1000);
  const last = curveAt(999, 1000);
  expect(first.progress).toBeCloseTo(0, 2);
  expect(last.progress).toBeCloseTo(1, 2);
  expect(curveAt(499.5, 1000).progress).toBeCloseTo(0.5, 6);
  expect(first.slope).toBeLessThan(curveAt(500, 1000).slope);
  const sum = Array.from({ length: 1000 }, (_, x) => curveAt(x, 1000).slope).reduce((a, b) => a + b);
  expect(sum).toBeCloseTo(1, 4);
});

test("opacity is 1 - exp(-coverage)", () => {
  const pixels = ink(lines([[10, 10, 0.7]]), [BLUE], { ...OPTIONS, lineWidth: 2 });
  expect(Math.abs(pixels[4 * 10 * OPTIONS.width + 3] - 255 * (1 - Math.exp(-0.7)))).toBeLessThanOrEqual(1);
});

test("where two heads meet, the stronger one gives the colour", () => {
  const pixels = ink(lines([[10, 10, 3]], [[10, 10, 0.3]]), [BLUE, RED], OPTIONS);
  const at = 4 * 10 * OPTIONS.width;
  expect(pixels[at + 2]).toBeGreaterThan(230);
  expect(pixels[at]).toBeLessThan(30);
});

test("lines outside the picture leave no trace", () => {
  const pixels = ink(
    lines([
      [-9, -9, 5],
      [49, 49, 5],
      [-1, -1, 5],
    ]),
    [BLUE],
    OPTIONS,
  );
  expect(pixels.every((channel) => channel === 0)).toBe(true);
});
