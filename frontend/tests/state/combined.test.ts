import { expect, test } from "vitest";
import { added, scoreAt } from "../../src/draw/scores";
import { wordParts } from "../../src/state/store/chosen";
import { KEYS, QUERIES, scoreParts } from "../draw/parts";

test("what the neurons of two words add is the mean of what those of their pieces add", () => {
  const parts = { ...scoreParts(), bias: null, softCap: null, visible: null };
  // The last two queries are one word, and so are keys 1 to 3.
  const query = { wordOf: [...Array(QUERIES).keys()].map((at) => Math.min(at, QUERIES - 2)), starts: [] as number[] };
  query.starts = [...Array(QUERIES - 1).keys(), QUERIES];
  const wordOf = [0, 1, 1, 1, ...Array.from({ length: KEYS - 4 }, (_, at) => at + 2)];
  const key = { wordOf, starts: [0, 1, ...Array.from({ length: KEYS - 3 }, (_, at) => at + 4)] };
  const words = wordParts(parts, 2, { query, key });
  const pairs = [QUERIES - 2, QUERIES - 1].flatMap((from) => [1, 2, 3].map((to) => [from, to]));
  const mean = pairs.reduce((sum, [from, to]) => sum + scoreAt(parts, 2, from, to), 0) / pairs.length;
  expect([words.queries, words.keys]).toEqual([QUERIES - 1, KEYS - 2]);
  expect(added(words, 0, QUERIES - 2, 1).reduce((sum, value) => sum + value, 0)).toBeCloseTo(mean, 5);
  // A word of one piece has the numbers of that piece.
  expect([...added(words, 0, 0, 0)]).toEqual([...added(parts, 2, 0, 0)]);
});
