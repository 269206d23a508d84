import { expect, test } from "vitest";
import { pythonCall } from "../../src/state/call";
import { pageSelection } from "../../src/state/selection";
import { examplePage } from "../examples/page";

const start = pageSelection(examplePage().page);

test("the call says view and layer, and else what differs from the usual", () => {
  expect(pythonCall(start, false)).toBe('hs.view(record, view="head", layer=0)');
  expect(pythonCall(start, true)).toBe('hs.view(record, view="head", stack="self", layer=0)');
});

test("numbers, lists and truth values are written as Python has them", () => {
  const chosen = { ...start, heads: [0, 2], query: [0], hide_special: true, sinks: false };
  expect(pythonCall({ ...chosen, view: "matrix", quantity: "rollout", theme: "dark" }, false)).toBe(
    'hs.view(record, view="matrix", layer=0, heads=[0, 2], query=[0], quantity="rollout", hide_special=True, sinks=False, ' +
      'theme="dark")',
  );
});

test("a stack may have any name", () => {
  expect(pythonCall({ ...start, stack: 'a "b" \\' }, true)).toContain(String.raw`stack="a \"b\" \\"`);
});

test("a page of a comparison is opened with the comparison", () => {
  expect(pythonCall(start, false, false, "comparison")).toBe('hs.view(comparison, view="head", layer=0)');
});

test("a page with evidence is opened with evidence", () => {
  const chosen = {
    ...start,
    view: "matrix",
    order: "kind",
  } as const;
  expect(pythonCall(chosen, false, true)).toBe('hs.view(record, evidence=found, view="matrix", layer=0, order="kind")');
});
