import { expect, test } from "vitest";
import { arrayValues, mergedTokens, mergedValues, mergeOf } from "../../src/draw/values";
import { columnOf, toByte, WEIGHT } from "../../src/draw/weights";
import { byteWeights } from "./parts";

const PIECES = ["[CLS]", "straw", "berr", "ies", "red"];
const TOKENS = {
  pieces: PIECES,
  labels: PIECES,
  continues: [false, false, true, true, false],
  words: ["[CLS]", "strawberries", "red"],
  special: [true, false, false, false, false],
  segments: [0, 0, 0, 0, 1],
};
const QUERIES = {
  ...TOKENS,
  pieces: ["a", "b", "c"],
  labels: ["a", "b", "c"],
  continues: [false, true, false],
  words: ["ab", "c"],
};

test("pieces that continue make one word with what stands before", () => {
  expect(mergeOf(TOKENS)).toEqual({ wordOf: [0, 1, 1, 1, 2], starts: [0, 1, 4, 5] });
  const words = mergedTokens(TOKENS, mergeOf(TOKENS));
  expect(words.labels).toEqual(["[CLS]", "strawberries", "red"]);
  expect(words.special).toEqual([true, false, false]);
  expect(words.segments).toEqual([0, 0, 1]);
  expect(words.continues).toEqual([false, false, false]);
  expect(mergeOf({ ...TOKENS, continues: [true, true, false, false, false] }).starts).toEqual([0, 2, 3, 4, 5]);
});

const of = { query: mergeOf(QUERIES), key: mergeOf(TOKENS) };
// Two heads, three queries, five keys; each row sums to 1.
const ROWS = [
  [0.1, 0.2, 0.3, 0.2, 0.2],
  [0.5, 0.1, 0.1, 0.1, 0.2],
  [0, 0, 0.4, 0.5, 0.1],
];
const BYTES = Uint8Array.from([...ROWS, ...ROWS.toReversed()].flat(), toByte);

test("a word gets the sum of its pieces and gives their mean", () => {
  const weights = byteWeights(BYTES, { heads: 2, queries: 3, keys: 5 });
  const words = mergedValues(weights, of);
  expect([words.heads, words.queries, words.keys]).toEqual([2, 2, 3]);
  const near = (row: Float32Array, wanted: number[]) =>
    wanted.forEach((value, key) => {
      expect(row[key]).toBeCloseTo(value, 1.7);
    });
  near(words.row(0, 0), [0.3, 0.5, 0.2]);
  near(words.row(0, 1), [0, 0.9, 0.1]);
  near(words.row(1, 1), [0.1, 0.7, 0.2]);
  near(columnOf(words, 0, 1), [0.5, 0.9]);
  near(
    Float32Array.from(words.bytes(0), (byte) => WEIGHT[byte]),
    [0.3, 0.5, 0.2, 0, 0.9, 0.1],
  );
});

test("scores are the mean of the pairs that may be seen", () => {
  const no = Number.NEGATIVE_INFINITY;
  const numbers = Float32Array.from([1, 2, 4, no, no, 3, no, no, no, no, 1, 1, 1, 1, no]);
  const scores = arrayValues(numbers, { heads: 1, queries: 3, keys: 5 }, true);
  const words = mergedValues(scores, of, true);
  expect([...words.row(0, 0)]).toEqual([2, 3, no]);
  expect([...words.row(0, 1)]).toEqual([1, 1, no]);
  expect(words.bytes(0)[2]).toBe(128);
});

test("other quantities add up beyond the largest of their pieces", () => {
  const shape = { heads: 1, queries: 3, keys: 5 };
  const words = mergedValues(arrayValues(Float32Array.from(Array(15).fill(2)), shape, false), of);
  expect([...words.row(0, 0)]).toEqual([2, 6, 2]);
  expect(words.top?.(0)).toBe(6);
  expect(words.bytes(0)[1]).toBe(255);
});
