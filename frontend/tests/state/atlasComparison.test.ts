import { expect, test } from "vitest";
import type { ComparedScore } from "../../src/source/atlas";
import { isClear, mapDifference, rowsOf } from "../../src/state/atlas";

test("heads stand in rows of their layers", () => {
  const cells = [
    [0, 0],
    [1, 0],
    [1, 1],
    [3, 5],
  ];
  const heads = cells.map(([layer, head]) => ({ layer, head }));
  expect(rowsOf(heads)).toEqual({ layers: [0, 1, 3], rows: [[0], [1, 2], [3]] });
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
