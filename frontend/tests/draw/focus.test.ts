import { expect, test } from "vitest";
import { missingShare, received, strongest, tokenAttention } from "../../src/draw/values";
import { WEIGHT } from "../../src/draw/weights";
import { exampleBytes } from "../examples/page";
import { byteWeights } from "./parts";

const BYTES = exampleBytes(3 * 5 * 7, 2);
const SHAPE = { heads: 3, queries: 5, keys: 7 };
const WEIGHTS = byteWeights(BYTES, SHAPE);
const MASK = { query: Uint8Array.of(1, 0, 1, 1, 1), key: Uint8Array.of(1, 1, 0, 1, 1, 1, 1) };
const weight = (head: number, query: number, key: number) => WEIGHT[BYTES[(head * 5 + query) * 7 + key]];
const close = (values: number[]) => values.map((value) => expect.closeTo(value, 6));

test("from a query: one weight for each key", () => {
  const row = [...MASK.key].map((shown, key) => shown * weight(2, 3, key));
  expect([...tokenAttention(WEIGHTS, 2, MASK, { side: "query", tokens: [3] })]).toEqual(close(row));
});

test("from several queries: the mean of those that take part", () => {
  const mean = tokenAttention(WEIGHTS, 1, MASK, { side: "query", tokens: [0, 1, 4] });
  const wanted = [...MASK.key].map((shown, key) => (shown * (weight(1, 0, key) + weight(1, 4, key))) / 2);
  expect([...mean]).toEqual(close(wanted));
});

test("to a key: one weight for each query", () => {
  const mean = tokenAttention(WEIGHTS, 1, MASK, { side: "key", tokens: [6] });
  expect([...mean]).toEqual(close([...MASK.query].map((shown, query) => shown * weight(1, query, 6))));
});

test("a token that takes no part has no attention", () => {
  expect(new Set(tokenAttention(WEIGHTS, 0, MASK, { side: "query", tokens: [1] }))).toEqual(new Set([0]));
});

test("received is the mean over all queries", () => {
  const found = received(WEIGHTS, 2, MASK);
  expect(found[5]).toBeCloseTo([0, 2, 3, 4].reduce((sum, query) => sum + weight(2, query, 5), 0) / 5, 6);
  expect(found[2]).toBe(0);
});

test("the strongest come first, equals in reading order, nothing without attention", () => {
  expect(strongest(Float32Array.of(0.1, 0.5, 0, 0.5, 0.2), 3)).toEqual([1, 3, 4]);
  expect(strongest(Float32Array.of(0, 0, 0.3), 9)).toEqual([2]);
});

test("what is missing of rows is told of those that look at anything", () => {
  const rows = [
    [0.5, 0.2],
    [0, 0],
    [0.25, 0.25],
  ].map((row) => Float32Array.from(row));
  const values = { ...WEIGHTS, row: (_: number, query: number) => rows[query] };
  expect(missingShare(values, 0, [0])).toBeCloseTo(0.3, 6);
  expect(missingShare(values, 0, [0, 1, 2])).toBeCloseTo(0.4, 6);
  expect(missingShare(values, 0, [1])).toBe(0);
});
