import { expect, test } from "vitest";
import { strongestWords } from "../../src/state/store/weights";
import { examplePage, tokens } from "../examples/page";
import { byteWeights } from "./parts";

const query = tokens(["[CLS]", "the", "cat", "sat"]);
const key = tokens(["[CLS]", "the", "cat", "sat", "[SEP]"]);
const [stack] = examplePage({ query, key }).page.stacks;
const rows = [
  [255, 0, 0, 0, 0],
  [200, 250, 90, 0, 240],
  [10, 120, 0, 130, 0],
  [0, 110, 0, 99, 0],
];
const weights = byteWeights(Uint8Array.from(rows.flat()), { heads: 1, queries: 4, keys: 5 });

test("the strongest pair is one of two different words, and no special token", () => {
  expect(strongestWords(weights, 0, stack, [])).toEqual({ query: 2, key: 3 });
});

test("keys that take most of the attention are no words either", () => {
  expect(strongestWords(weights, 0, stack, [3])).toEqual({ query: 2, key: 1 });
});

test("where nothing is joined it is the first pair", () => {
  const none = byteWeights(new Uint8Array(20), { heads: 1, queries: 4, keys: 5 });
  expect(strongestWords(none, 0, stack, [])).toEqual({ query: 0, key: 0 });
});
