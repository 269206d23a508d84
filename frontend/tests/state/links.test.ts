import { expect, test } from "vitest";
import { type LayerWeights, toByte, WEIGHT } from "../../src/draw/weights";
import { choicesOf, pairOf, predictedHeads, wordMap } from "../../src/views/links/LinksPanel";
import type { PageLinks } from "../../types/page";

/** Two heads over six tokens: [CLS], a word of two pieces, two of one, [SEP]. */
const ROWS = [
  [
    [1, 0, 0, 0, 0, 0],
    [0.2, 0.3, 0.1, 0.3, 0.1, 0],
    [0, 0.1, 0.1, 0.1, 0.5, 0.2],
    [0.6, 0.2, 0.15, 0.05, 0, 0],
    [0, 0, 0, 0.25, 0.75, 0],
    [0, 0, 0, 0, 0, 1],
  ],
  [
    [1, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 1],
    [0, 0, 0, 1, 0, 0],
    [0, 0.5, 0.5, 0, 0, 0],
    [0, 0.5, 0, 0.5, 0, 0],
    [0, 0, 0, 0, 0, 1],
  ],
];
const WEIGHTS: LayerWeights = {
  heads: 2,
  queries: 6,
  keys: 6,
  bytes: (head) => Uint8Array.from(ROWS[head].flat(), toByte),
  row: (head, query) => Float32Array.from(ROWS[head][query]),
  column: (head, key) => Float32Array.from(ROWS[head], (row) => row[key]),
};
const WORDS = [
  { label: "strawberries", tokens: [1, 2] },
  { label: "grow", tokens: [3] },
  { label: "here", tokens: [4] },
];
const LINKS: PageLinks = {
  stack: "self",
  name: "",
  tree: true,
  words: WORDS,
  arcs: [
    { dependent: 0, head: 1, label: "nsubj" },
    { dependent: 2, head: 1, label: "advmod" },
  ],
};

test("what goes to a word is summed over its tokens, what comes from one is averaged", () => {
  const expected = [0.3, 0.2, 0.3, 0.35, 0.05, 0, 0, 0.25, 0.75];
  const found = wordMap(WEIGHTS, 0, WORDS);
  expect(found).toHaveLength(expected.length);
  for (const [at, value] of expected.entries()) expect(found[at]).toBeCloseTo(value, 6);
});

test("the other word with the largest value is chosen, in rows or in columns, of equal ones the first", () => {
  const map = Float64Array.from([0.9, 0.1, 0, 0.3, 0.1, 0.6, 0.2, 0.8, 0]);
  const chosen = (direction: "dep->head" | "head->dep") => predictedHeads(map, direction).map((each) => each.chosen);
  expect(chosen("dep->head")).toEqual([1, 2, 1]);
  expect(chosen("head->dep")).toEqual([1, 2, 1]);
  expect(predictedHeads(map.with(2, 0.1), "dep->head")[0]).toEqual({ chosen: 1, weight: 0.1 });
  expect(predictedHeads(map.with(5, 0.05), "head->dep")[2]).toEqual({ chosen: 1, weight: 0.05 });
});

test("a word that looks at no other chooses none", () => {
  expect(predictedHeads(Float64Array.from([1, 0, 0.5, 0.5]), "dep->head")[0]).toEqual({ chosen: -1, weight: 0 });
});

test("hits and misses are told of the words that have a gold head", () => {
  const told = (head: number) =>
    choicesOf(LINKS, wordMap(WEIGHTS, head, WORDS), "dep->head").map(({ word, chosen, hit }) => [word, chosen, hit]);
  expect(told(0)).toEqual([
    [0, 2, false],
    [2, 1, true],
  ]);
  expect(told(1)).toEqual([
    [0, 1, true],
    [2, 0, false],
  ]);
});

test("any of several gold heads is a hit", () => {
  const arcs = [...LINKS.arcs, { dependent: 0, head: 2, label: "coref" }];
  const [first] = choicesOf({ ...LINKS, arcs }, wordMap(WEIGHTS, 0, WORDS), "dep->head");
  expect(first).toMatchObject({ gold: [1, 2], label: "nsubj, coref", chosen: 2, hit: true });
  expect(first.weight).toBeCloseTo(WEIGHT[255] * 0.3, 6);
});

test("a word and its gold head are pinned by their first tokens, the root alone", () => {
  expect(pairOf(LINKS, 0, "dep->head")).toEqual({ query: 1, key: 3 });
  expect(pairOf(LINKS, 0, "head->dep")).toEqual({ query: 3, key: 1 });
  expect(pairOf(LINKS, 1, "dep->head")).toEqual({ query: 3 });
});
