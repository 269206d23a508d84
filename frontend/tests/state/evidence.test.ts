import { beforeAll, expect, test } from "vitest";
import { type Evidence, loadEvidence } from "../../src/source/heads";
import { headName, headWords, labelsOf, shownFor } from "../../src/state/evidence";
import { exampleEvidence } from "../examples/evidence";
import { exampleSource } from "../examples/page";

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

test("a label says its interval and its number of texts, or that it was one text", () => {
  expect(headWords(evidence, 1)).toBe("next .80, 95 % interval .78 to .81 over 24 texts");
  expect(headWords(once, 1)).toBe("next .80, seen on one text only");
  expect(headWords(evidence, 0)).toBe("");
});

test("names and examples are those of the model's numbers", () => {
  expect(headName(evidence, 5)).toBe("2-2");
  expect(shownFor(evidence, 1, 0)?.pairs).toEqual([{ query: 2, key: 3, weight: 0.6 }]);
  expect(shownFor(evidence, 1, 1)).toBeUndefined();
});
