import { expect, test } from "vitest";
import { CHOICES, DEFAULTS as USUAL } from "../../contract/values";
import { readFragment, type Selection, writeFragment } from "../../src/state/selection";

const DEFAULTS: Selection = { view: "head", stack: "self", layer: 3, ...USUAL };

/** Options of words and switches as they are not by default. */
const OTHERS = {
  ...Object.fromEntries(Object.entries(CHOICES).map(([name, words]) => [name, words.at(-1)])),
  ...Object.fromEntries(
    Object.entries(USUAL).flatMap(([name, usual]) => (typeof usual === "boolean" ? [[name, !usual]] : [])),
  ),
};

const FULL: Selection = {
  ...DEFAULTS,
  ...OTHERS,
  view: "neuron",
  stack: "a & b=c#+ ü",
  layer: 0,
  heads: [0, 5, 11],
  query: [0, 7],
  key: [0],
  pinned: "sum",
  words: true,
  quantity: "score",
  filter: "ba",
  hide_special: true,
  sinks: false,
  order: "kind",
  kind: "near",
  layout: "rows",
  tiles: "lines",
  direction: "given",
  neurons: "ranked",
  vector: "key",
  zoom: [1.5, 0, 3],
  link_direction: "head->dep",
  link_words: "misses",
  tray: ["2-0", "7-3,4 view=matrix query=5 quantity=score hide_special=1"],
  shown_record: "b",
  theme: "dark",
};

test("nothing to say gives an empty fragment", () => {
  expect(writeFragment(DEFAULTS, DEFAULTS)).toBe("");
  expect(readFragment("", DEFAULTS)).toEqual(DEFAULTS);
  expect(readFragment("#", DEFAULTS)).toEqual(DEFAULTS);
});

test("a link can be read by people", () => {
  expect(writeFragment({ ...DEFAULTS, layer: 0, heads: [0, 2], query: [4], sinks: false }, DEFAULTS)).toBe(
    "v=2&layer=0&heads=0,2&query=4&sinks=0",
  );
});

test.each<[string, Selection, Selection]>([
  ["everything", FULL, DEFAULTS],
  ["back to the empty values", DEFAULTS, FULL],
  ["layer 0", { ...DEFAULTS, layer: 0 }, DEFAULTS],
  ["head 0", { ...DEFAULTS, heads: [0] }, DEFAULTS],
  ["all heads where some are default", { ...DEFAULTS, heads: null }, { ...DEFAULTS, heads: [1] }],
  ["query 0", { ...DEFAULTS, query: [0] }, DEFAULTS],
  ["no kind where one is default", { ...DEFAULTS, kind: null }, { ...DEFAULTS, kind: "next" }],
  ["no query where some are default", DEFAULTS, { ...DEFAULTS, query: [0, 3] }],
  ["special tokens shown where on is default", DEFAULTS, { ...DEFAULTS, hide_special: true }],
])("%s comes back from a link as it was", (_, selection, defaults) => {
  const fragment = writeFragment(selection, defaults);
  expect(fragment).toMatch(/^v=2&[^#\s]+$/);
  expect(readFragment(`#${fragment}`, defaults)).toEqual(selection);
});

test.each([
  "layer=0",
  "v=1&layer=0",
  "v=2&view=film&layer=two&heads=1,,2&filter=ac&hide_special=yes&query=a&key=1,&quantity=Mass!&theme=pink",
  "v=2&query=-1&heads=&layer=1e3&unknown=4",
  "%E0%A4%A",
])("nonsense changes nothing: %s", (fragment) => {
  expect(readFragment(fragment, DEFAULTS)).toEqual(DEFAULTS);
});

test.each(["constructor", "toString", "__proto__"])("a flag is 0 or 1, not %s", (text) => {
  expect(readFragment(`v=2&hide_special=${text}`, DEFAULTS).hide_special).toBe(false);
});
