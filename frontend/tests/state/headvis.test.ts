import { expect, test } from "vitest";
import type { AtlasIndex, TreeSequence } from "../../src/source/atlas";
import {
  digits,
  meanOf,
  metricMaps,
  metricOf,
  notKeptWords,
  spacesBefore,
  statisticText,
  tokenName,
  treeText,
} from "../../src/state/atlas";

const metrics = [
  { name: "qk distance", says: "", values: [2, null, 5], parts: [0, null, 1], places: ["2 of 2", "", "1 of 2"] },
  { name: "a/b 50 %", says: "", values: [1, 1, 1], parts: [0.5, 0.5, 0.5], places: [] },
];
const index = { metrics } as unknown as AtlasIndex;

test("the metric that is looked for is found, and the first one else", () => {
  for (const metric of metrics) expect(metricOf(index, metric.name)).toBe(metric);
  expect(metricOf(index, "1-2")).toBe(metrics[0]);
  expect(metricOf({} as AtlasIndex, "previous")).toBe(undefined);
});

test("the least of a metric is coloured a little, and what is not known is not", () => {
  expect([...metricMaps(metrics[0])]).toEqual([20, 0, 255]);
});

test("rows say how much of them is not kept; the strongest link is not one to the first token", () => {
  const sequence = {
    tokens: ["a", " b", "c"],
    queries: [0, 1, 2, 1],
    keys: [0, 0, 2, 1],
    weights: [1, 0.7, 0.39, 0.3],
    rest: [0, 0, 0.61],
  } as unknown as TreeSequence;
  const { rest = [], strongest, tokens } = treeText(sequence);
  expect(rest.map(notKeptWords)).toEqual(["all kept", "all kept", "61 % not kept"]);
  expect(meanOf(rest)).toBeCloseTo(0.2033, 4);
  expect(strongest).toEqual({ query: 2, key: 2, weight: 0.39 });
  expect(tokens.map(({ name, continues }) => [name, continues])).toEqual([
    ["a", false],
    ["b", false],
    ["c", true],
  ]);
});

test("spaces are those of the tokens, or between words where no token has one", () => {
  expect(spacesBefore(["<s>", "The", " cat", "s"])).toEqual([false, false, true, false]);
  expect(spacesBefore(["[CLS]", "straw", "##berry", "."])).toEqual([false, true, false, true]);
  expect(["##berry", " it", "\n", "  ", "##"].map(tokenName)).toEqual(["berry", "it", "↵", "␣␣", "##"]);
});

test("numbers are written as the tree wants it", () => {
  expect([0.16349, 12.44, 1830, 0, 0.00012, null].map(digits)).toEqual(["0.163", "12.4", "1,830", "0", "1.2e-4", "–"]);
  expect(statisticText(0.881, "percent")).toBe("88 %");
  expect(statisticText(20.2, "integer")).toBe("20");
  expect(statisticText("some", "integer")).toBe("some");
});
