import { expect, test } from "vitest";
import { liftThumbs } from "../../src/draw/thumbs";
import { toByte } from "../../src/draw/weights";
import { boundsOf, liftsOfSentence, sentenceAt, sentenceName } from "../../src/state/sentences";
import type { Store } from "../../src/state/store";
import type { PageStack } from "../../types/page";
import { examplePage, tokens } from "../examples/page";

const WORDS = tokens(["The", "cat", "sat", ".", "It", "slept", "all", "day", "long", "."]);
const { page } = examplePage({ query: WORDS, key: WORDS });
const stack: PageStack = { ...page.stacks[0], sentences: { query: [0, 4], key: [0, 4] } };

test("every token is in one sentence", () => {
  expect(boundsOf(stack, "query", 0)).toEqual([0, 4]);
  expect(boundsOf(stack, "key", 1)).toEqual([4, 10]);
  expect([0, 3, 4, 9].map((token) => sentenceAt(stack, "query", token))).toEqual([0, 0, 1, 1]);
});

test("a sentence is named as it begins", () => {
  expect(sentenceName(stack, "query", 1)).toBe("It slept all day long .");
  expect(sentenceName(stack, "query", 1, 7)).toBe("It slep…");
  expect(sentenceName(stack, "query", 1, 8)).toBe("It slept…");
});

test("an even head gives every sentence once the even share, at any number of tokens", () => {
  for (const of of [99, 266, 1893, 7434]) {
    const thumbs = liftThumbs(() => new Uint8Array(4).fill(toByte(1 / of)), { heads: 1, queries: 2, keys: 2 }, of);
    const store = { thumbs: { value: thumbs }, full: { value: 0 } } as Store;
    for (const lift of liftsOfSentence(store, 1) ?? []) expect(lift).toBeCloseTo(1, 5);
  }
});
