import { expect, test } from "vitest";
import { editOf } from "../../src/views/live/TwoTexts";
import { pageOf } from "../liveModel";

test("of two texts as few tokens are marked as can be", () => {
  const edit = (first: string, second: string) =>
    editOf(pageOf(first).page.stacks[0].query, pageOf(second).page.stacks[0].query);
  expect(edit("we went home", "we came home")).toEqual({ first: [2], second: [2] });
  // Two edits far from each other leave what stands between them as it is.
  expect(edit("he said that he knew him", "she said that she knew her")).toEqual({
    first: [1, 4, 6],
    second: [1, 4, 6],
  });
  expect(edit("the nurse", "the kind old nurse")).toEqual({ first: [], second: [2, 3] });
  expect(edit("the kind old nurse", "the nurse")).toEqual({ first: [2, 3], second: [] });
  expect(edit("same", "same")).toEqual({ first: [], second: [] });
});
