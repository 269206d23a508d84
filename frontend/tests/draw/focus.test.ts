import { expect, test } from "vitest";
import { missingShare, received, stackedBar, strongest, strongestWeight, tokenAttention } from "../../src/draw/focus";
import { byteWeights, WEIGHT } from "../../src/draw/weights";
import { exampleBytes } from "../examples/page";

const BYTES = exampleBytes(3 * 5 * 7, 2);
const SHAPE = { heads: 3, queries: 5, keys: 7 };
const WEIGHTS = byteWeights(BYTES, SHAPE);
const MASK = { query: Uint8Array.of(1, 0, 1, 1, 1), key: Uint8Array.of(1, 1, 0, 1, 1, 1, 1) };
const weight = (head: number, query: number, key: number) => WEIGHT[BYTES[(head * 5 + query) * 7 + key]];
const close = (values: number[]) => values.map((value) => expect.closeTo(value, 6));

test("from a query: one weight for each key, by head and as mean", () => {
  const { byHead, mean } = tokenAttention(WEIGHTS, [2, 0], MASK, { side: "query", tokens: [3] });
  const row = (head: number) => [...MASK.key].map((shown, key) => shown * weight(head, 3, key));
  expect(byHead.map((head) => [...head])).toEqual([close(row(2)), close(row(0))]);
  expect([...mean]).toEqual(close(row(2).map((value, key) => (value + row(0)[key]) / 2)));
});

test("from several queries: the mean of those that take part", () => {
  const { mean } = tokenAttention(WEIGHTS, [1], MASK, { side: "query", tokens: [0, 1, 4] });
  const wanted = [...MASK.key].map((shown, key) => (shown * (weight(1, 0, key) + weight(1, 4, key))) / 2);
  expect([...mean]).toEqual(close(wanted));
});

test("to a key: one weight for each query", () => {
  const { mean } = tokenAttention(WEIGHTS, [1], MASK, { side: "key", tokens: [6] });
  expect([...mean]).toEqual(close([...MASK.query].map((shown, query) => shown * weight(1, query, 6))));
});

test("a token that takes no part has no attention", () => {
  expect(strongestWeight(tokenAttention(WEIGHTS, [0, 1], MASK, { side: "query", tokens: [1] }))).toBe(0);
});

test("received is the mean over all queries", () => {
  const { byHead, mean } = received(WEIGHTS, [0, 1, 2], MASK);
  const wanted = (head: number, key: number) =>
    (MASK.key[key] * [0, 2, 3, 4].reduce((sum, query) => sum + weight(head, query, key), 0)) / 5;
  expect(byHead[2][5]).toBeCloseTo(wanted(2, 5), 6);
  expect(mean[4]).toBeCloseTo((wanted(0, 4) + wanted(1, 4) + wanted(2, 4)) / 3, 6);
  expect(mean[2]).toBe(0);
});

test("the strongest come first, equals in reading order, nothing without attention", () => {
  expect(strongest(Float32Array.of(0.1, 0.5, 0, 0.5, 0.2), 3)).toEqual([1, 3, 4]);
  expect(strongest(Float32Array.of(0, 0, 0.3), 9)).toEqual([2]);
  expect(
    strongestWeight({ byHead: [Float32Array.of(0.1), Float32Array.of(0.4)], mean: new Float32Array(1) }),
  ).toBeCloseTo(0.4);
});

test("a stacked bar is divided as its parts are, and empty parts have no colour", () => {
  expect(stackedBar([0.1, 0, 0.3], ["red", "green", "blue"])).toBe("linear-gradient(90deg, red 0% 25%, blue 25% 100%)");
  expect(stackedBar([0, 0], ["red", "green"])).toBe("none");
});

test("what is missing of rows is told of those that look at anything", () => {
  const rows = [
    [0.5, 0.2],
    [0, 0],
    [0.25, 0.25],
  ].map((row) => Float32Array.from(row));
  const values = { ...WEIGHTS, row: (_: number, query: number) => rows[query] };
  expect(missingShare(values, [0], [0])).toBeCloseTo(0.3, 6);
  expect(missingShare(values, [0, 1], [0, 1, 2])).toBeCloseTo(0.4, 6);
  expect(missingShare(values, [0], [1])).toBe(0);
});
