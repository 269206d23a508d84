import { expect, test } from "vitest";
import type { Mask } from "../../src/draw/mask";
import { affordableStep, countRow, cutoffsAt, drawn, headShares, SHARES } from "../../src/draw/share";
import { arrayValues } from "../../src/draw/values";
import { byteWeights, WEIGHT } from "../../src/draw/weights";
import { exampleBytes } from "../../src/examples/page";

const BYTES = exampleBytes(3 * 5 * 7, 4);
const SHAPE = { heads: 3, queries: 5, keys: 7 };
const WEIGHTS = byteWeights(BYTES, SHAPE);
const ALL: Mask = { query: new Uint8Array(5).fill(1), key: new Uint8Array(7).fill(1) };
const SOME: Mask = { query: Uint8Array.of(1, 0, 1, 1, 0), key: Uint8Array.of(0, 1, 1, 0, 1, 1, 1) };

const byteAt = (head: number, query: number, key: number) => BYTES[(head * 5 + query) * 7 + key];

/** The kept keys of a row by sorting, ties with the weakest kept one included. */
function naiveRow(head: number, query: number, share: number, mask: Mask): number[] {
  const keys = [...Array(7).keys()].filter((key) => mask.query[query] && mask.key[key] && byteAt(head, query, key) > 0);
  const sorted = keys.toSorted((a, b) => byteAt(head, query, b) - byteAt(head, query, a));
  const total = sorted.reduce((sum, key) => sum + WEIGHT[byteAt(head, query, key)], 0);
  let sum = 0;
  let weakest = 256;
  for (const key of sorted) {
    if (share < 100 && 100 * sum >= share * total - 1e-9) break;
    weakest = byteAt(head, query, key);
    sum += WEIGHT[weakest];
  }
  return keys.filter((key) => byteAt(head, query, key) >= weakest);
}

test.each([
  ["all tokens", ALL],
  ["some tokens", SOME],
])("each row keeps its strongest keys up to the share, with %s", (_, mask) => {
  for (const head of [0, 1, 2]) {
    const shares = headShares(WEIGHTS, head, mask);
    SHARES.forEach((share, step) => {
      const cutoffs = cutoffsAt(shares, step);
      const kept = [0, 1, 2, 3, 4].flatMap((query) => {
        const wanted = naiveRow(head, query, share, mask);
        const keys = [...Array(7).keys()].filter((key) => mask.key[key] && byteAt(head, query, key) >= cutoffs[query]);
        expect(keys, `head ${head}, query ${query}, ${share} %`).toEqual(wanted);
        return keys.map((key) => WEIGHT[byteAt(head, query, key)]);
      });
      expect(shares.lines[step]).toBe(kept.length);
      expect(shares.mass[step]).toBeCloseTo(
        kept.reduce((a, b) => a + b, 0),
        6,
      );
    });
  }
});

test("everything is drawn at 100 %, but never a weight stored as 0", () => {
  const shares = headShares(WEIGHTS, 1, ALL);
  const bytes = [...BYTES.subarray(35, 70)];
  expect(bytes).toContain(0);
  expect(shares.lines.at(-1)).toBe(bytes.filter((byte) => byte > 0).length);
  expect(shares.mass.at(-1)).toBeCloseTo(shares.total, 6);
  expect(Math.min(...cutoffsAt(shares, SHARES.length - 1))).toBe(1);
});

test("equal weights are kept or left together", () => {
  const equal = byteWeights(new Uint8Array(2 * 3).fill(100), { heads: 1, queries: 2, keys: 3 });
  const mask = { query: Uint8Array.of(1, 1), key: Uint8Array.of(1, 1, 1) };
  expect(headShares(equal, 0, mask).lines[0]).toBe(6);
});

test("a row of zeros draws nothing", () => {
  const zero = byteWeights(new Uint8Array(2 * 3), { heads: 1, queries: 2, keys: 3 });
  const shares = headShares(zero, 0, { query: Uint8Array.of(1, 1), key: Uint8Array.of(1, 1, 1) });
  expect([...shares.lines]).toEqual(SHARES.map(() => 0));
  expect(drawn([shares], 50).part).toBe(0);
});

test("a row's histogram counts only what the mask shows", () => {
  const counts = new Uint32Array(256).fill(9);
  countRow(WEIGHTS, 2, 3, SOME.key, counts);
  expect(counts.reduce((a, b) => a + b)).toBe(5);
  for (const key of [1, 2, 4, 5, 6]) expect(counts[byteAt(2, 3, key)]).toBeGreaterThan(0);
});

test("the part drawn is of all attention, also of what the mask hides", () => {
  const heads = [0, 2].map((head) => headShares(WEIGHTS, head, SOME));
  const all = [0, 2].map((head) => headShares(WEIGHTS, head, ALL));
  const last = SHARES.length - 1;
  expect(drawn(all, last).part).toBeCloseTo(1, 6);
  expect(drawn(heads, last).part).toBeCloseTo(drawn(heads, last).mass / drawn(all, last).mass, 6);
  expect(drawn(heads, last).part).toBeLessThan(1);
});

test("the largest share that fits the budget is affordable", () => {
  const heads = [0, 1, 2].map((head) => headShares(WEIGHTS, head, ALL));
  const last = SHARES.length - 1;
  const most = drawn(heads, last).lines;
  expect(affordableStep(heads, most)).toBe(last);
  expect(affordableStep(heads, 0)).toBe(0);
  const step = affordableStep(heads, 30);
  expect(drawn(heads, step).lines).toBeLessThanOrEqual(30);
  expect(drawn(heads, step + 1).lines).toBeGreaterThan(30);
});

test("where rows sum to anything, each counts alike for the part that is drawn", () => {
  const numbers = Float32Array.of(8, 1, 1, 0.1, 0.1, 0.2, 0, 0, 0);
  const values = arrayValues(numbers, { heads: 1, queries: 3, keys: 3 }, false);
  const mask = { query: Uint8Array.of(1, 1, 1), key: Uint8Array.of(0, 1, 1) };
  const shares = headShares(values, 0, mask);
  const last = SHARES.length - 1;
  expect(shares.total).toBeCloseTo(2, 6);
  expect(drawn([shares], last).mass).toBeCloseTo(2.3, 1);
  expect(drawn([shares], last).part).toBeCloseTo((0.2 + 0.75) / 2, 1);
});

test("of values of both signs the largest sizes are kept", () => {
  const values = arrayValues(Float32Array.of(-6, 4, 1, 0), { heads: 1, queries: 1, keys: 4 }, true);
  const shares = headShares(values, 0, { query: Uint8Array.of(1), key: new Uint8Array(4).fill(1) });
  expect(shares.lines[SHARES.indexOf(50)]).toBe(1);
  expect(shares.lines[SHARES.indexOf(90)]).toBe(2);
  expect(shares.lines.at(-1)).toBe(3);
  expect(shares.mass.at(-1)).toBeCloseTo(11, 1);
});
