import { expect, test } from "vitest";
import { readFragment, writeFragment } from "../../src/state/fragment";
import type { Selection } from "../../src/state/selection";

const DEFAULTS: Selection = {
  stack: "self",
  layer: 3,
  heads: null,
  filter: "all",
  mute: false,
  share: null,
  pin: null,
  theme: "auto",
};

const FULL: Selection = {
  stack: "a & b=c#+ ü",
  layer: 0,
  heads: [0, 5, 11],
  filter: "ba",
  mute: true,
  share: 85,
  pin: { side: "key", token: 0 },
  theme: "dark",
};

test("nothing to say gives an empty fragment", () => {
  expect(writeFragment(DEFAULTS, DEFAULTS)).toBe("");
  expect(readFragment("", DEFAULTS)).toEqual(DEFAULTS);
  expect(readFragment("#", DEFAULTS)).toEqual(DEFAULTS);
});

test("a link can be read by people", () => {
  expect(writeFragment({ ...DEFAULTS, layer: 0, heads: [0, 2], pin: { side: "query", token: 4 } }, DEFAULTS)).toBe(
    "v=1&layer=0&heads=0,2&pin=query-4",
  );
});

test.each<[string, Selection, Selection]>([
  ["everything", FULL, DEFAULTS],
  ["back to the empty values", DEFAULTS, FULL],
  ["layer 0", { ...DEFAULTS, layer: 0 }, DEFAULTS],
  ["head 0", { ...DEFAULTS, heads: [0] }, DEFAULTS],
  ["all heads where some are default", { ...DEFAULTS, heads: null }, { ...DEFAULTS, heads: [1] }],
  ["mute off where on is default", DEFAULTS, { ...DEFAULTS, mute: true }],
])("%s comes back from a link as it was", (_, selection, defaults) => {
  const fragment = writeFragment(selection, defaults);
  expect(fragment).toMatch(/^v=1&[^#\s]+$/);
  expect(readFragment(`#${fragment}`, defaults)).toEqual(selection);
});

test.each([
  "layer=0",
  "v=2&layer=0",
  "v=1&layer=two&heads=1,,2&filter=ac&mute=yes&share=-5&pin=value-3&theme=pink",
  "v=1&pin=query--1&layer=1e3&unknown=4",
  "%E0%A4%A",
])("nonsense changes nothing: %s", (fragment) => {
  expect(readFragment(fragment, DEFAULTS)).toEqual(DEFAULTS);
});
