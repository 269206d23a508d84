import { expect, test } from "vitest";
import { columnTop, pitchFor, scrollTo, visibleTokens } from "../../src/draw/tokens";

test("tokens are as far apart as the height allows, within limits", () => {
  expect(pitchFor(5, 600)).toBe(44);
  expect(pitchFor(25, 600)).toBe(24);
  expect(pitchFor(512, 600)).toBe(18);
});

test("a short column stands in the middle and does not scroll", () => {
  expect(columnTop(200, 900, 600, 0)).toBe(200);
  expect(columnTop(200, 900, 600, 300)).toBe(200);
});

test("columns of different length reach their ends together", () => {
  expect(columnTop(900, 900, 600, 0)).toBeCloseTo(0);
  expect(columnTop(700, 900, 600, 0)).toBeCloseTo(0);
  expect(900 + columnTop(900, 900, 600, 300)).toBe(600);
  expect(700 + columnTop(700, 900, 600, 300)).toBe(600);
  expect(columnTop(700, 900, 600, 150)).toBe(-50);
});

test("scrolling to a token brings it into the picture, in both columns", () => {
  for (const [count, scroll] of [
    [50, 0],
    [40, 120],
  ] as const) {
    const at = (position: number) => ({ tokens: count, pitch: 18, top: columnTop(18 * count, 900, 600, position) });
    for (const token of [0, 7, count - 1]) {
      const position = scrollTo(token, at(scroll), 900, 600, scroll);
      const [first, end] = visibleTokens(at(position), 600);
      expect(token).toBeGreaterThanOrEqual(first);
      expect(token).toBeLessThan(end);
    }
  }
});

test("a token that is well inside moves nothing", () => {
  expect(scrollTo(10, { tokens: 50, pitch: 18, top: 0 }, 900, 600, 0)).toBe(0);
});

test("visible tokens are those that touch the picture", () => {
  expect(visibleTokens({ tokens: 50, pitch: 20, top: -30 }, 100)).toEqual([1, 7]);
  expect(visibleTokens({ tokens: 3, pitch: 20, top: 20 }, 100)).toEqual([0, 3]);
});
