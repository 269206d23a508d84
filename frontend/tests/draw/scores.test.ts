import { expect, test } from "vitest";
import { type ScoreParts, scoreAt, scoreRow, scoreWeights, visibleRuns } from "../../src/draw/scores";
import { columnOf, WEIGHT } from "../../src/draw/weights";
import { FEATURES, HEADS, KEYS, numbers, QUERIES, scoreParts } from "./parts";

/** The formula, said plainly. */
function naive(of: ScoreParts, head: number, query: number, key: number): number {
  const seen = of.visible === null || VISIBLE.some(([q, first, end]) => q === query && key >= first && key < end);
  if (!seen) return Number.NEGATIVE_INFINITY;
  let dot = 0;
  for (let f = 0; f < FEATURES; f++) {
    const q = of.query[(head * QUERIES + query) * FEATURES + f];
    dot += q * of.key[(Math.floor(head / 2) * KEYS + key) * FEATURES + f];
  }
  const score = of.softCap === null ? dot * of.scale : of.softCap * Math.tanh((dot * of.scale) / of.softCap);
  if (!of.bias) return score;
  const from = of.bias.heads === 1 ? 0 : head;
  const at = of.bias.byOffset
    ? from * (QUERIES + KEYS - 1) + key - query + QUERIES - 1
    : (from * QUERIES + query) * KEYS + key;
  return score + of.bias.values[at];
}

const VISIBLE = [
  [0, 0, 3],
  [1, 1, 2],
  [1, 4, 7],
  [2, 0, 7],
  [4, 6, 7],
] as const;

const CASES: [string, Partial<ScoreParts>][] = [
  ["nothing else", {}],
  ["a soft cap", { softCap: 0.8 }],
  ["a bias by offset", { bias: { values: numbers(HEADS * 11, 5), heads: HEADS, byOffset: true } }],
  ["one bias for all heads", { bias: { values: numbers(35, 6), heads: 1, byOffset: false } }],
  // the cap bounds the product of query and key alone
  ["a bias beside a soft cap", { softCap: 0.8, bias: { values: numbers(35, 6), heads: 1, byOffset: false } }],
  ["a bias by offset beside a soft cap", { softCap: 0.3, bias: { values: numbers(44, 5), heads: 4, byOffset: true } }],
  ["runs of visible keys", { visible: visibleRuns(Int32Array.from(VISIBLE.flat()), QUERIES) }],
  ["sinks", { sinks: [0.5, -1, 2, 0] }],
];

test.each(CASES)("scores and weights follow the formula, with %s", (_, more) => {
  const of = scoreParts(more);
  const weights = scoreWeights(of);
  for (const head of [0, 1, 3]) {
    for (let query = 0; query < QUERIES; query++) {
      const wanted = [...Array(KEYS).keys()].map((key) => naive(of, head, query, key));
      const raised = wanted.map(Math.exp);
      const total = raised.reduce((a, b) => a + b, 0) + (of.sinks ? Math.exp(of.sinks[head]) : 0);
      const row = weights.row(head, query);
      wanted.forEach((score, key) => {
        expect(scoreRow(of, head, query)[key]).toBeCloseTo(score, 4);
        expect(scoreAt(of, head, query, key)).toBeCloseTo(score, 4);
        expect(row[key]).toBeCloseTo(total > 0 ? raised[key] / total : 0, 5);
        expect(columnOf(weights, head, key)[query]).toBeCloseTo(row[key], 5);
        expect(Math.abs(WEIGHT[weights.bytes(head)[query * KEYS + key]] - row[key])).toBeLessThan(0.004);
      });
    }
  }
});

test("a query that may look at nothing has no weights", () => {
  const of = scoreParts({ visible: visibleRuns(Int32Array.from(VISIBLE.flat()), QUERIES) });
  expect([...scoreWeights(of).row(2, 3)]).toEqual(Array(KEYS).fill(0));
  expect([...scoreWeights(of).bytes(2).subarray(21, 28)]).toEqual(Array(KEYS).fill(0));
});

test("the bytes of a head are worked out once", () => {
  const weights = scoreWeights(scoreParts());
  expect(weights.bytes(1)).toBe(weights.bytes(1));
});
