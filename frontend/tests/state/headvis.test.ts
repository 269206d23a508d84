import { expect, test } from "vitest";
import type { TreeIndex, TreeSequence } from "../../src/source/atlas";
import {
  digits,
  meanOf,
  metricAddress,
  notKept,
  notKeptWords,
  partOf,
  rangeOf,
  rankOf,
  readMetric,
  spacesBefore,
  statisticText,
  tokenName,
} from "../../src/state/atlas";

const metrics = [
  { name: "qk_distance", says: "", values: [2, null, 5] },
  { name: "a/b 50 %", says: "", values: [1, 1, 1] },
];
const index = { metrics } as unknown as TreeIndex;

test("the metric of an address is found, and the first one else", () => {
  for (const metric of metrics) expect(readMetric(metricAddress(metric.name), index)).toBe(metric);
  expect(readMetric("#/head/1-2", index)).toBe(metrics[0]);
  expect(readMetric(metricAddress("none"), index)).toBe(metrics[0]);
});

test("what is not known has no range and no rank", () => {
  expect(rangeOf(metrics[0].values)).toEqual([2, 5]);
  expect(rangeOf([null])).toEqual([0, 0]);
  expect(partOf(1, [1, 1])).toBe(0.5);
  expect([0, 1, 2].map((at) => rankOf(metrics[0], at))).toEqual([[2, 2], null, [1, 2]]);
});

test("rows say how much of them is not kept, and rounding is not taken for it", () => {
  const sequence = {
    tokens: ["a", "b", "c"],
    queries: [0, 1, 1, 2],
    keys: [0, 0, 1, 2],
    weights: [1.0001, 0.7, 0.2996, 0.39],
  } as unknown as TreeSequence;
  const rest = notKept(sequence);
  expect(rest.map((part) => Number(part.toFixed(4)))).toEqual([0, 0, 0.61]);
  expect(rest.map(notKeptWords)).toEqual(["all kept", "all kept", "61 % not kept"]);
  expect(meanOf(rest)).toBeCloseTo(0.2033, 4);
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
