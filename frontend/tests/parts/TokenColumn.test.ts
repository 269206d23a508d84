import { expect, test } from "vitest";
import { runs } from "../../src/parts/tokens";

test("tokens of the same text stand together", () => {
  expect(runs([0, 0, 0, 1, 1])).toEqual([
    { start: 0, length: 3, text: "A" },
    { start: 3, length: 2, text: "B" },
  ]);
  expect(runs([1, 0, 0])).toEqual([
    { start: 0, length: 1, text: "B" },
    { start: 1, length: 2, text: "A" },
  ]);
});
