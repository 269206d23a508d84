import { expect, test } from "vitest";
import {
  added,
  addedOverall,
  byPair,
  carried,
  pairOf,
  ranked,
  scoreAt,
  scoreByDistance,
  scoreWeights,
} from "../../src/draw/scores";
import { FEATURES, KEYS, QUERIES, scoreParts } from "./parts";

const PARTS = scoreParts();

test("what the neurons add is the score", () => {
  const parts = added(PARTS, 3, 4, 6);
  expect(parts).toHaveLength(FEATURES);
  expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(scoreAt(PARTS, 3, 4, 6), 5);
});

test("overall they add what lifts the attended keys above the mean", () => {
  const weights = scoreWeights(PARTS).row(2, 1);
  const scores = [...Array(KEYS).keys()].map((key) => scoreAt(PARTS, 2, 1, key));
  const lifted = scores.reduce((sum, score, key) => sum + weights[key] * score, 0);
  const mean = scores.reduce((a, b) => a + b, 0) / KEYS;
  expect(addedOverall(PARTS, 2, 1, weights).reduce((a, b) => a + b, 0)).toBeCloseTo(lifted - mean, 5);
});

test("the largest come first whatever their sign, and their parts add up to all", () => {
  const order = ranked(Float32Array.of(0.5, -2, 0, 1.5));
  expect(order).toEqual([1, 3, 0, 2]);
  expect(carried(Float32Array.of(0.5, -2, 0, 1.5), order)).toEqual([0.5, 0.875, 1, 1]);
  expect(carried(new Float32Array(3), [0, 1, 2])).toEqual([0, 0, 0]);
});

/** Queries and keys as a rotary model makes them: the same numbers at every position, turned. */
function turned(
  vector: readonly number[],
  position: number,
  frequencies: readonly number[],
  style: "halves" | "neighbours",
) {
  const made = [...vector];
  frequencies.forEach((frequency, pair) => {
    const [a, b] = pairOf({ frequencies: [...frequencies], style, start: 1 }, pair);
    const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
    made[a] = vector[a] * cos - vector[b] * sin;
    made[b] = vector[a] * sin + vector[b] * cos;
  });
  return made;
}

test.each(["halves", "neighbours"] as const)(
  "the score by distance is what the model would compute there, pairs are %s",
  (style) => {
    const frequencies = [1, 0.2];
    const [q, k] = [
      [0.3, -1.2, 0.8, 0.5, 0.7, -0.4],
      [1.1, 0.4, -0.6, 0.9, -0.2, 0.6],
    ];
    const at = (vectors: readonly number[], position: number) => turned(vectors, position, frequencies, style);
    const query = Float32Array.from(Array.from({ length: QUERIES }, (_, position) => at(q, position)).flat());
    const key = Float32Array.from(Array.from({ length: KEYS }, (_, position) => at(k, position)).flat());
    const parts = { ...PARTS, heads: 1, kvHeads: 1, query, key };
    const found = scoreByDistance(parts, { frequencies, style, start: 1 }, 0, [2, 5], [0, 4, 2, -3]);
    const wanted = [scoreAt(parts, 0, 3, 3), scoreAt(parts, 0, 4, 0), scoreAt(parts, 0, 2, 0), scoreAt(parts, 0, 2, 5)];
    found.forEach((score, index) => {
      expect(score).toBeCloseTo(wanted[index], 5);
    });
  },
);

test("features stand pair by pair, those that are not turned last", () => {
  expect(byPair({ frequencies: [1, 0.1], style: "halves", start: 0 }, 5)).toEqual([0, 2, 1, 3, 4]);
  expect(byPair({ frequencies: [1, 0.1], style: "neighbours", start: 0 }, 5)).toEqual([0, 1, 2, 3, 4]);
  expect(byPair({ frequencies: [1, 0.1], style: "neighbours", start: 1 }, 5)).toEqual([1, 2, 3, 4, 0]);
});
