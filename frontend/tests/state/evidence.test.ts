import { beforeAll, expect, test } from "vitest";
import { ENTROPY, exampleEvidence } from "../../src/examples/evidence";
import { examplePage, exampleSource } from "../../src/examples/page";
import { type Evidence, loadEvidence } from "../../src/source/evidence";
import {
  axisGroups,
  axisTitle,
  fitChoice,
  headName,
  headWords,
  labelCounts,
  labelsOf,
  measured,
  measureNumber,
  ranked,
  shownFor,
  wantedLabels,
} from "../../src/state/evidence";
import { pageSelection } from "../../src/state/selection";

let evidence: Evidence;
let once: Evidence;

beforeAll(async () => {
  const load = async (example = exampleEvidence()) => {
    const loaded = await loadEvidence(exampleSource(example), example.page);
    if (!loaded) throw new Error("no evidence");
    return loaded;
  };
  evidence = await load();
  once = await load(exampleEvidence({ texts: 1 }));
});

test("a head's told labels come first in the order of patterns, the rest by score", () => {
  const names = (head: number) => labelsOf(evidence, head).map(({ name, status }) => `${name} ${status}`);
  expect(names(6)).toEqual(["next held", "same held"]);
  expect(names(5)).toEqual(["same held", "next none"]);
  expect(names(3)).toEqual(["same none", "next none"]);
  expect(labelsOf(evidence, 6)[1]).toMatchObject({ score: Math.fround(0.9), threshold: 0.3, texts: 24 });
});

test("heads stand out by label and score", () => {
  const heads = (wanted: { label: string | null; min_score: number }) =>
    [...Array(9).keys()].filter((head) => wantedLabels(evidence, head, wanted).length > 0);
  expect(heads({ label: null, min_score: 0 })).toEqual([1, 5, 6]);
  expect(heads({ label: "next", min_score: 0 })).toEqual([1, 6]);
  expect(heads({ label: "next", min_score: 70 })).toEqual([1]);
  expect(heads({ label: null, min_score: 85 })).toEqual([6]);
  expect(labelCounts(evidence)).toEqual([2, 2]);
});

test("a label says its interval and its number of texts, or that it was one text", () => {
  expect(headWords(evidence, 1)).toBe("next .80, 95 % interval .78 to .81 over 24 texts");
  expect(headWords(once, 1)).toBe("next .80, seen on one text only");
  expect(headWords(evidence, 0)).toBe("");
});

test("heads are sorted by any measure or score, from either end", () => {
  const entropies = ranked(evidence, "entropy").map((head) => ENTROPY[head]);
  expect(entropies).toEqual([...ENTROPY].sort((a, b) => b - a));
  expect(ranked(evidence, "-entropy")).toEqual([...ranked(evidence, "entropy")].reverse());
  expect(ranked(evidence, "same").slice(0, 2)).toEqual([6, 5]);
  expect(ranked(evidence, "layer")).toEqual([6, 7, 8, 3, 4, 5, 0, 1, 2]);
});

test("unknown numbers come last, heads that there are not are left out", () => {
  const values = evidence.values.slice();
  values[9 + 6] = Number.NaN;
  values[4] = Number.NaN;
  const holed = { ...evidence, values };
  expect(ranked(holed, "entropy").at(-1)).toBe(6);
  expect(ranked(holed, "-entropy").at(-1)).toBe(6);
  expect(ranked(holed, "entropy")).not.toContain(4);
});

test("measures, scores and classes are found by name", () => {
  expect(measured(evidence, "entropy")[6]).toBe(3);
  expect(measured(evidence, "same")[6]).toBeCloseTo(0.9, 6);
  expect(measured(evidence, "nothing")[6]).toBeNaN();
  expect(axisGroups(evidence)).toEqual({
    measures: ["layer", "entropy", "distance"],
    "scores of patterns": ["next", "same"],
    "classes of maps": ["class vertical"],
  });
  expect(["entropy", "same", "class vertical"].map((name) => axisTitle(evidence, name))).toEqual([
    "entropy, nats",
    "score of same",
    "share of vertical maps",
  ]);
  expect(measureNumber(evidence, "entropy", 1.234)).toBe("1.23 nats");
  expect(measureNumber(evidence, "same", 0.5)).toBe(".50");
  expect(measureNumber(evidence, "distance", Number.NaN)).toBe("–");
});

test("names and examples are those of the model's numbers", () => {
  expect(headName(evidence, 5)).toBe("2-2");
  expect(shownFor(evidence, 1, 0)?.pairs).toEqual([{ query: 2, key: 3, weight: 0.6 }]);
  expect(shownFor(evidence, 1, 1)).toBeUndefined();
});

test("a page shows what it can of what is asked for", () => {
  const asked = {
    label: "next",
    min_score: 60,
    sort: "-entropy",
    x: "map",
    y: "class vertical",
  } as const;
  const { page } = exampleEvidence();
  const selection = { ...pageSelection(page), ...asked };
  expect(fitChoice(selection, page)).toEqual(asked);
  const nothing = { label: null, min_score: 0, sort: null, x: null, y: null };
  expect(fitChoice(selection, examplePage().page)).toEqual(nothing);
  const nonsense = { ...selection, label: "mine", min_score: 400, sort: "--entropy", x: "toString", y: "map" };
  expect(fitChoice(nonsense, page)).toEqual(nothing);
  const mapless = page.evidence && { ...page, evidence: { ...page.evidence, map: null } };
  expect(fitChoice(selection, mapless ?? page).x).toBeNull();
});
