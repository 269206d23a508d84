import { expect, test } from "vitest";
import { visibleRuns } from "../../src/draw/scores";
import {
  arrayValues,
  codeOf,
  contributionValues,
  type LayerValues,
  largest,
  received,
  scoreValues,
  tokenAttention,
  topOf,
} from "../../src/draw/values";
import { columnOf } from "../../src/draw/weights";
import { exampleBytes } from "../examples/page";
import { byteWeights } from "./parts";

const SHAPE = { heads: 3, queries: 5, keys: 7 };
const WEIGHTS = byteWeights(exampleBytes(3 * 5 * 7, 5), SHAPE);
const NORMS = Float32Array.from({ length: 3 * 7 }, (_, at) => 0.3 * ((at * 5) % 11));
const NUMBERS = Float32Array.from({ length: 3 * 5 * 7 }, (_, at) => (((at * 37) % 101) - 50) / 9);
const SCORES = scoreValues({
  ...SHAPE,
  features: 2,
  query: Float32Array.from({ length: 3 * 5 * 2 }, (_, at) => ((at * 13) % 17) - 8),
  kvHeads: 1,
  key: Float32Array.from({ length: 7 * 2 }, (_, at) => ((at * 7) % 11) - 5),
  scale: 0.5,
  softCap: null,
  bias: null,
  sinks: null,
  visible: visibleRuns(Int32Array.of(0, 0, 7, 1, 2, 4, 2, 0, 3, 4, 1, 7), 5),
});

const CASES: [string, LayerValues][] = [
  ["weights", WEIGHTS],
  ["scores", SCORES],
  ["contributions", contributionValues(WEIGHTS, NORMS)],
  ["an array of both signs", arrayValues(NUMBERS, SHAPE, true)],
  ["an array of no sign", arrayValues(NUMBERS.map(Math.abs), SHAPE, false)],
];

test.each(CASES)("bytes, rows and columns of %s tell the same numbers", (_, values) => {
  const { parts, signed } = codeOf(values);
  for (const head of [0, 1, 2]) {
    const [bytes, top] = [values.bytes(head), topOf(values, head)];
    for (let query = 0; query < 5; query++) {
      const row = values.row(head, query);
      row.forEach((value, key) => {
        expect(columnOf(values, head, key)[query]).toBeCloseTo(value, 5);
        const shown = Number.isFinite(value) ? value : 0;
        const step = top / (signed ? 127 : 255);
        expect(Math.abs(parts[bytes[query * 7 + key]] * top - shown), `${head} ${query} ${key}`).toBeLessThanOrEqual(
          step + 1e-6,
        );
      });
    }
  }
});

test.each(CASES)("the levels of %s have the order of sizes, nothing first", (_, values) => {
  const { parts, levels, sizes } = codeOf(values);
  for (let byte = 1; byte < 256; byte++) expect(sizes[levels[byte]]).toBeCloseTo(Math.abs(parts[byte]), 6);
  expect(levels.filter((level) => level === 0)).toHaveLength(1);
});

test("a contribution is the weight times the norm of its head and key", () => {
  const values = contributionValues(WEIGHTS, NORMS);
  expect(values.row(2, 4)[6]).toBeCloseTo(WEIGHTS.row(2, 4)[6] * NORMS[2 * 7 + 6], 6);
  expect(topOf(values, 0)).toBeCloseTo(largest(NORMS), 6);
  expect(
    contributionValues(WEIGHTS, new Float32Array(21))
      .bytes(1)
      .every((byte) => byte === 0),
  ).toBe(true);
});

test("a masked pair has no part in what a key is looked at with, a score below 0 has", () => {
  const mask = { query: new Uint8Array(5).fill(1), key: new Uint8Array(7).fill(1) };
  const mean = tokenAttention(SCORES, 1, mask, { side: "query", tokens: [1] });
  expect([...mean].map((value) => value !== 0)).toEqual([false, false, true, true, false, false, false]);
  expect(mean[2]).toBeCloseTo(SCORES.row(1, 1)[2], 5);
  const all = received(arrayValues(NUMBERS, SHAPE, true), 1, mask)[4];
  const wanted = [0, 1, 2, 3, 4].reduce((sum, query) => sum + NUMBERS[35 + query * 7 + 4], 0) / 5;
  expect(Math.abs(all - wanted)).toBeLessThan(largest(NUMBERS) / 127);
});
