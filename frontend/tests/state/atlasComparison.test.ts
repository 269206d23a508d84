import { expect, test } from "vitest";
import type { ComparedScore, ComparisonIndex } from "../../src/source/atlas";
import {
  changeOf,
  isClear,
  mapDifference,
  pairAddress,
  pairName,
  pairsOf,
  readPair,
  rowsOf,
} from "../../src/state/atlas";

const heads = (cells: readonly (readonly [number, number])[]) => cells.map(([layer, head]) => ({ layer, head }));
const pair = (a: number, b: number, similarity: number) => ({ a, b, similarity });
const index = {
  a: {
    heads: heads([
      [0, 0],
      [0, 1],
      [2, 0],
    ]),
  },
  b: {
    heads: heads([
      [0, 0],
      [1, 0],
      [1, 1],
      [3, 5],
    ]),
  },
  chance: 0.6,
  pairs: [pair(0, 3, 0.9), pair(2, 1, 0.5)],
} as unknown as ComparisonIndex;

test("each head knows its pair, or that it has none", () => {
  expect(pairsOf(index, "a")).toEqual([0, -1, 1]);
  expect(pairsOf(index, "b")).toEqual([-1, 1, -1, 0]);
});

test("heads stand in rows of their layers", () => {
  expect(rowsOf(index.b.heads)).toEqual({ layers: [0, 1, 3], rows: [[0], [1, 2], [3]] });
});

test("a pair has the address of its head of A", () => {
  expect(pairAddress(index, 1)).toBe("#/pair/2-0");
  expect(readPair(pairAddress(index, 1), index)).toBe(1);
  expect(readPair("#/pair/0-1", index)).toBe(-1);
  expect(readPair("#/head/2-0", index)).toBeNull();
  expect(pairName(index, index.pairs[0])).toBe("0-0 → 3-5");
});

test("a change is none for equal heads and full for random pairs", () => {
  expect(changeOf(index, index.pairs[0])).toBeCloseTo(0.25);
  expect(changeOf(index, index.pairs[1])).toBe(1);
});

test("only an interval without 0 is clear", () => {
  const score = (low: number | null, high: number | null): ComparedScore => [0, "next", 0.2, 0.4, low, high];
  expect([score(0.1, 0.3), score(-0.3, -0.1), score(-0.1, 0.3), score(null, null)].map(isClear)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("maps are subtracted as weights, not as the roots that they are kept as", () => {
  const maps = Uint8Array.from([0, 0, 0, 0, 255, 0, 51, 0]);
  const other = Uint8Array.from([51, 0, 51, 255]);
  const difference = mapDifference({ maps, at: 1 }, { maps: other, at: 0 }, 2);
  expect([...difference].map((value) => Number(value.toFixed(4)))).toEqual([-0.96, 0, 0, 1]);
});
