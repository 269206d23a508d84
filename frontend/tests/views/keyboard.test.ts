import { expect, test } from "vitest";
import { neighbour } from "../../src/views/head/Picture";

const COUNTS = { query: 5, key: 70 };

test.each([
  ["ArrowDown", "query", 4, { side: "query", token: 4 }],
  ["ArrowUp", "key", 1, { side: "key", token: 0 }],
  ["PageDown", "key", 30, { side: "key", token: 40 }],
  ["Home", "key", 30, { side: "key", token: 0 }],
  ["End", "key", 30, { side: "key", token: 69 }],
  ["ArrowLeft", "key", 30, { side: "query", token: 4 }],
  ["ArrowRight", "query", 3, { side: "key", token: 3 }],
  ["ArrowRight", "key", 3, null],
  ["x", "key", 3, null],
] as const)("%s from %s %i", (key, side, token, wanted) => {
  expect(neighbour({ side, token }, key, COUNTS)).toEqual(wanted);
});
