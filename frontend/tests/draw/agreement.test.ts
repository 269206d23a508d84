import { expect, test } from "vitest";
import { agreement, rankCorrelation } from "../../src/draw/values";

test("rank correlation of equal, opposite and tied orders", () => {
  expect(rankCorrelation([1, 2, 3, 9], [10, 20, 30, 31])).toBeCloseTo(1, 12);
  expect(rankCorrelation([1, 2, 3], [3, 2, -5])).toBeCloseTo(-1, 12);
  expect(rankCorrelation([1, 1, 2, 3], [1, 2, 3, 4])).toBeCloseTo(0.9486832980505138, 12);
  expect(rankCorrelation([1, 1, 1], [1, 2, 3])).toBeNaN();
});

test("queries agree where their strongest key is the same; what is not finite does not count", () => {
  const one = [Float32Array.of(0.1, 0.7, 0.2), Float32Array.of(0.5, 0.3, 0.2)];
  const other = [Float32Array.of(-1, 4, Number.NEGATIVE_INFINITY), Float32Array.of(1, 2, 0)];
  const found = agreement(
    (query) => one[query],
    (query) => other[query],
    2,
  );
  expect(found).toMatchObject({ rows: 2, sameTop: 0.5 });
  expect(found?.rank).toBeCloseTo((1 + rankCorrelation([0.5, 0.3, 0.2], [1, 2, 0])) / 2, 6);
});

test("a row that does not vary has no rank correlation, and does not count for their mean", () => {
  const [even, uneven] = [Float32Array.of(1, 1, 1), Float32Array.of(3, 2, 1)];
  expect(
    agreement(
      (row) => (row ? even : uneven),
      () => uneven,
      2,
    ),
  ).toEqual({ rows: 2, sameTop: 1, rank: 1 });
  expect(
    agreement(
      () => even,
      () => uneven,
      2,
    )?.rank,
  ).toBeNaN();
});

test("rows with nothing in common give no agreement", () => {
  const none = Float32Array.of(Number.NaN, Number.NEGATIVE_INFINITY);
  expect(
    agreement(
      () => none,
      () => none,
      3,
    ),
  ).toBeNull();
});

test("of many queries some are compared, evenly", () => {
  const asked = new Set<number>();
  const rows = (query: number) => {
    asked.add(query);
    return Float32Array.from({ length: 300 }, (_, key) => (key * 7 + query) % 300);
  };
  expect(agreement(rows, rows, 1000)).toMatchObject({ sameTop: 1, rank: expect.closeTo(1, 9) });
  expect(asked.size).toBe(192);
  expect(Math.max(...asked)).toBeGreaterThan(980);
});
