import { expect, test } from "vitest";
import { contrast, parseHex } from "../../src/draw/color";
import { marksOf } from "../../src/draw/marks";

const OURS = [
  ...["next", "previous", "same", "same-other", "delimiter", "bag", "positional-next", "positional-previous"],
  ...["sink", "induction", "previous-token"],
];
const THEIRS = ["mine", "__proto__", "toString", "corner", "other"];

test("every mark has a shape of its own, so that colours are not needed", () => {
  const shapes = marksOf([...OURS, ...THEIRS], false).map(({ path, hollow }) => `${path} ${hollow}`);
  expect(new Set(shapes).size).toBe(OURS.length + THEIRS.length);
});

test.each([
  [false, "#ffffff"],
  [true, "#111419"],
])("marks are seen on a card (dark: %s)", (dark, card) => {
  for (const { color } of marksOf([...OURS, "mine"], dark)) {
    expect(contrast(parseHex(color), parseHex(card))).toBeGreaterThan(4.5);
  }
});

test("patterns of a family share its colour", () => {
  const [next, positional, previous] = marksOf(["next", "positional-next", "previous"], true);
  expect(positional.color).toBe(next.color);
  expect(previous.color).not.toBe(next.color);
});
