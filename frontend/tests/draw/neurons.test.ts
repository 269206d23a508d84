import { expect, test } from "vitest";
import { added, addedOverall, byPair, carried, ranked, scoreAt, scoreWeights } from "../../src/draw/scores";
import { FEATURES, KEYS, scoreParts } from "./parts";

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

test("features stand pair by pair, those that are not turned last", () => {
  expect(byPair({ frequencies: [1, 0.1], style: "halves", start: 0 }, 5)).toEqual([0, 2, 1, 3, 4]);
  expect(byPair({ frequencies: [1, 0.1], style: "neighbours", start: 0 }, 5)).toEqual([0, 1, 2, 3, 4]);
  expect(byPair({ frequencies: [1, 0.1], style: "neighbours", start: 1 }, 5)).toEqual([1, 2, 3, 4, 0]);
});
