import { expect, test } from "vitest";
import { collectLines, everyLine, type LineOptions, type Lines } from "../../src/draw/lines";
import { arrayValues } from "../../src/draw/values";
import { WEIGHT } from "../../src/draw/weights";
import { exampleBytes } from "../examples/page";
import { byteWeights } from "./parts";

const BYTES = exampleBytes(3 * 5 * 7, 1);
const SHAPE = { heads: 3, queries: 5, keys: 7 };
const WEIGHTS = byteWeights(BYTES, SHAPE);
const MASK = { query: Uint8Array.of(1, 1, 0, 1, 1), key: Uint8Array.of(1, 0, 1, 1, 1, 1, 1) };

function options(more: Partial<LineOptions> = {}): LineOptions {
  return {
    height: 140,
    query: { tokens: 5, pitch: 20, top: 20 },
    key: { tokens: 7, pitch: 20, top: 0 },
    mask: MASK,
    cutoffs: everyLine(MASK),
    reach: 1,
    gain: 2,
    gamma: 1,
    ...more,
  };
}

const ends = (lines: Lines) => Array.from(lines.starts, (start, line) => [start, start + lines.rises[line]]);

test("there is a line for every weight inside the mask that is not stored as 0", () => {
  const lines = collectLines(WEIGHTS, 2, options());
  const wanted: number[] = [];
  for (let q = 0; q < 5; q++) {
    for (let k = 0; k < 7; k++) {
      const byte = BYTES[(2 * 5 + q) * 7 + k];
      if (byte && MASK.query[q] && MASK.key[k]) wanted.push(2 * WEIGHT[byte]);
    }
  }
  expect([...lines.offsets]).toEqual([0, wanted.length]);
  expect([...lines.strengths]).toEqual(wanted.map((strength) => expect.closeTo(strength, 6)));
});

test("a line goes from the middle of its query to the middle of its key, however long the columns", () => {
  const bytes = new Uint8Array(105);
  bytes[35 + 3 * 7 + 6] = 200;
  expect(ends(collectLines(byteWeights(bytes, SHAPE), 1, options()))).toEqual([[20 + 3.5 * 20, 6.5 * 20]]);
});

test("only the lines of one token", () => {
  const bytes = new Uint8Array(105).fill(100);
  const from = collectLines(byteWeights(bytes, SHAPE), 0, options({ only: { side: "query", tokens: [4] } }));
  expect(new Set(from.starts)).toEqual(new Set([20 + 4.5 * 20]));
  expect(from.starts).toHaveLength(6);
  const to = collectLines(byteWeights(bytes, SHAPE), 0, options({ only: { side: "key", tokens: [5] } }));
  expect(new Set(ends(to).map(([, end]) => end))).toEqual(new Set([110]));
  expect(to.starts).toHaveLength(4);
});

test("a cutoff leaves weaker weights out, and 256 leaves all out", () => {
  const cutoffs = Uint16Array.of(60, 1, 256, 256, 100);
  const lines = collectLines(WEIGHTS, 1, options({ cutoffs }));
  let wanted = 0;
  for (const [q, cutoff] of cutoffs.entries()) {
    for (let k = 0; k < 7; k++) wanted += Number(MASK.key[k] && BYTES[35 + q * 7 + k] >= cutoff);
  }
  expect(wanted).toBeGreaterThan(0);
  expect(lines.starts).toHaveLength(wanted);
});

test("lines wholly above or below the picture are left out, those that cross it are not", () => {
  const bytes = new Uint8Array(105);
  bytes[0 * 7 + 0] = bytes[0 * 7 + 6] = bytes[4 * 7 + 6] = 200;
  const scrolled = { query: { tokens: 5, pitch: 100, top: -200 }, key: { tokens: 7, pitch: 100, top: -300 } };
  const lines = collectLines(byteWeights(bytes, SHAPE), 0, options({ ...scrolled, height: 150 }));
  expect(ends(lines)).toEqual([[-150, 350]]);
});

test("more lines than first made room for are all there", () => {
  const large = byteWeights(new Uint8Array(90 * 110).fill(9), { heads: 1, queries: 90, keys: 110 });
  const mask = { query: new Uint8Array(90).fill(1), key: new Uint8Array(110).fill(1) };
  const lines = collectLines(large, 0, options({ mask, cutoffs: everyLine(mask), height: 9000 }));
  expect(lines.starts).toHaveLength(9900);
  expect(lines.strengths.every((strength) => strength > 0)).toBe(true);
});

test("values of both signs are two colours of lines, as strong as their size", () => {
  const values = arrayValues(Float32Array.of(-6, 3, 0, 1.5, 6, -3), { heads: 1, queries: 1, keys: 6 }, true);
  const mask = { query: Uint8Array.of(1), key: new Uint8Array(6).fill(1) };
  const lines = collectLines(values, 0, options({ mask, cutoffs: everyLine(mask) }));
  expect([...lines.offsets]).toEqual([0, 3, 5]);
  const wanted = [3, 1.5, 6, 6, 3].map((size) => expect.closeTo((2 * size) / 6, 1));
  expect([...lines.strengths]).toEqual(wanted);
});
