import { expect, test } from "vitest";
import type { AtlasIndex, AtlasTile } from "../../src/source/atlas";
import { atlasClauses, findAddress, headAddress, hitsOf, linksOn, percents, readPlace } from "../../src/state/atlas";

const tile = (head: number, more: Partial<AtlasTile>): AtlasTile => ({
  layer: 2,
  head,
  labels: [],
  pairs: [],
  keys: [0.1, 0.1],
  evenKeys: [0.1, 0.1],
  ...more,
});
const index = {
  patterns: [
    { name: "previous", says: "" },
    { name: "next", says: "" },
  ],
  classes: ["first", "punctuation"],
  heads: [
    tile(0, { pairs: [["it", "dog", 0.01, 0.002, 1]] }),
    tile(1, { labels: [{ name: "previous", score: 0.7, holds: true }] }),
    tile(2, { labels: [{ name: "previous", score: 0.9, holds: true }] }),
    tile(3, { labels: [{ name: "previous", score: 0.95, holds: false }] }),
    tile(4, { keys: [0.1, 0.3], pairs: [["##it", "x", 0.02, 0.01, 1]] }),
  ],
} as unknown as AtlasIndex;
const found = (words: string) => hitsOf(index, words).map(({ at }) => at);

test("a label is found, those that hold it and most of it first, candidates after them", () => {
  expect(found("Previous ")).toEqual([2, 1, 3]);
  expect(found("next")).toEqual([]);
});

test("a sentence tells what the heads do, and each of its kinds finds them, whatever their label is called", () => {
  const labels = (...names: string[]) => names.map((name) => ({ name, score: 0.5, holds: true }));
  const heads = [
    tile(0, { labels: labels("first-token", "positional-previous") }),
    tile(1, { labels: labels("previous-token") }),
    tile(2, { labels: labels("delimiter") }),
    tile(3, { labels: labels("mine") }),
  ];
  const atlas = { ...index, heads } as AtlasIndex;
  expect(atlasClauses(atlas).map(({ count, text }) => `${count} ${text}`)).toEqual([
    "2 look at the previous token",
    "1 rests on one token",
    "1 changes with the text",
  ]);
  expect(hitsOf(atlas, "previous").map(({ at }) => at)).toEqual([0, 1]);
  expect(hitsOf(atlas, "resting").map(({ at }) => at)).toEqual([2]);
});

test("kinds of tokens, words and names are found", () => {
  expect(found("punct")).toEqual([4]);
  expect(found("it")).toEqual([4, 0]);
  expect(found("2-3")).toEqual([3]);
  expect(found("")).toEqual([]);
});

test("addresses are read as they were written", () => {
  expect(readPlace(headAddress(2, 7))).toEqual({ side: "", find: "", head: [2, 7], text: null });
  expect(readPlace(headAddress(2, 7, 12))).toEqual({ side: "", find: "", head: [2, 7], text: 12 });
  expect(readPlace(findAddress("50 %/x"))).toEqual({ side: "", find: "50 %/x", head: null, text: null });
  expect(readPlace("#/find/%E0%A4%A")).toEqual({ side: "", find: "%E0%A4%A", head: null, text: null });
  expect(readPlace(headAddress(2, 7, 12, "b"))).toEqual({ side: "b", find: "", head: [2, 7], text: 12 });
  expect(readPlace(findAddress("it", "a"))).toEqual({ side: "a", find: "it", head: null, text: null });
  expect(readPlace(findAddress("", "a"))).toEqual({ side: "a", find: "", head: null, text: null });
  expect(readPlace("")).toEqual({ side: "", find: "", head: null, text: null });
});

test("links are those of the text, the strongest and those of words by themselves", () => {
  const numbers = new Uint16Array(2 * 3 * 40).fill(65535);
  numbers.set([4, 1, 65535], 3 * 40);
  numbers.set([3, 2, 0x8000], 3 * 40 + 3 * 24);
  const links = btoa(String.fromCharCode(...new Uint8Array(numbers.buffer)));
  expect(linksOn({ links }, 0)).toEqual([]);
  expect(linksOn({ links }, 1)).toEqual([{ query: 4, key: 1, weight: 1 }]);
  expect(linksOn({ links }, 1, true)[0]).toMatchObject({ query: 3, key: 2 });
});

test("shares have two digits, and none looks like nothing that is something", () => {
  expect([0, 0.00001, 0.0038, 0.038, 0.38, 1].map(percents)).toEqual([
    "0.00 %",
    "<0.01 %",
    "0.38 %",
    "3.8 %",
    "38 %",
    "100 %",
  ]);
});
