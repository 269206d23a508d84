import { expect, test } from "vitest";
import { contrast } from "./contrast";

test("contrast is that of WCAG", () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
});
