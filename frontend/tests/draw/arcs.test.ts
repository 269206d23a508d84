import { expect, test } from "vitest";
import { arcLevels, arcPath } from "../../src/views/links/LinksPanel";

test("arcs run above those that they span, and beside those that they only touch", () => {
  const arcs = [
    { dependent: 0, head: 1 },
    { dependent: 3, head: 1 },
    { dependent: 2, head: 3 },
    { dependent: 5, head: 0 },
  ];
  expect(arcLevels(arcs)).toEqual([1, 2, 1, 3]);
});

test("arcs that cross, or join the same words, differ in height", () => {
  expect(
    arcLevels([
      { dependent: 0, head: 2 },
      { dependent: 1, head: 3 },
    ]),
  ).toEqual([1, 2]);
  expect(
    arcLevels([
      { dependent: 0, head: 1 },
      { dependent: 1, head: 0 },
    ]),
  ).toEqual([1, 2]);
});

test("an arc begins beside the middle of its head and ends in the middle of its dependent", () => {
  expect(arcPath(100, 20, 19, 50)).toMatch(/^M95 50V37.*V50$/);
  expect(arcPath(100, 20, 19, 50)).toContain("Q20 31 20 37");
  expect(arcPath(20, 100, 19, 50)).toMatch(/^M25 50/);
});
