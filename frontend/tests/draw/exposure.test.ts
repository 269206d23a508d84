import { expect, test } from "vitest";
import { exposure } from "../../src/draw/lines";

const PICTURE = { lineWidth: 1.5, height: 500, aim: 0.7, most: 3 };

test("the mean coverage is the one aimed at, whatever there is to draw", () => {
  for (const mass of [400, 2000, 6144]) expect((exposure({ ...PICTURE, mass }) * mass * 1.5) / 500).toBeCloseTo(0.7, 9);
});

test("few lines are not made darker than the limit", () => {
  expect(exposure({ ...PICTURE, mass: 1 })).toBe(3);
  expect(exposure({ ...PICTURE, mass: 0 })).toBe(3);
});
