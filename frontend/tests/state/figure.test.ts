import { expect, test } from "vitest";
import { type FigureFacts, figureCall, figureOptions } from "../../src/state/call";
import { pageSelection, type Selection } from "../../src/state/selection";
import { examplePage } from "../examples/page";

const selection = pageSelection(examplePage().page);

function facts(change: Partial<Selection> = {}, more: Partial<FigureFacts> = {}): FigureFacts {
  return {
    selection: { ...selection, ...change },
    dark: false,
    several: false,
    head: 2,
    query: 4,
    ...more,
  };
}

test("a figure has the options of its view and no others", () => {
  const all = {
    layer: 5,
    heads: [0, 2],
    query: [1, 3],
    key: [6],
    quantity: "score",
    filter: "ab",
    hide_special: true,
    sinks: false,
  } as const;
  const of = (view: Selection["view"]) => figureOptions(facts({ ...all, view }));
  const masked = { filter: "ab", hide_special: true, sinks: false };
  expect(of("head")).toEqual({
    view: "head",
    layer: 5,
    heads: [0, 2],
    query: 1,
    key: 6,
    quantity: "score",
    ...masked,
  });
  expect(of("matrix")).toEqual({ view: "matrix", layer: 5, heads: [0, 2], quantity: "score", ...masked });
  expect(of("text")).toEqual({ view: "text", layer: 5, heads: [0, 2], query: 1, quantity: "score", ...masked });
  expect(of("neuron")).toEqual({ view: "neuron", layer: 5, head: 2, query: 4 });
});

test("words are those of the page", () => {
  const chosen = figureOptions(facts({ view: "head", layer: 1, words: true }));
  expect(chosen).toEqual({ view: "head", layer: 1, words: true });
  expect(figureCall(chosen)).toBe('hs.figure(record, view="head", layer=1, words=True)');
  expect(figureOptions(facts({ view: "neuron", words: true }))).not.toHaveProperty("words");
});

test("numbers that are not in the record are asked for in the call", () => {
  const of = (quantity: string) => figureOptions(facts({ view: "matrix", quantity }));
  expect(figureCall(of("rollout"))).toBe('hs.figure(record, view="matrix", layer=0, quantity="rollout")');
  expect(figureCall(of("mine"))).toBe(
    'hs.figure(record, view="matrix", layer=0, quantity="mine", quantities=quantities)',
  );
});

test("what is as usual is left out, 0 and one head are not", () => {
  expect(figureOptions(facts())).toEqual({ view: "head", layer: 0 });
  expect(figureOptions(facts({ heads: [0], key: [0] }))).toEqual({ view: "head", layer: 0, head: 0, key: 0 });
  expect(figureOptions(facts({}, { dark: true, several: true }))).toEqual({
    view: "head",
    stack: "self",
    layer: 0,
    theme: "dark",
  });
});

test("the same as words of Python", () => {
  const options = figureOptions(facts({ heads: [0, 2], query: [0], hide_special: true, sinks: false }, { dark: true }));
  expect(figureCall(options)).toBe(
    'hs.figure(record, view="head", layer=0, heads=[0, 2], query=0, hide_special=True, sinks=False, theme="dark")',
  );
});
