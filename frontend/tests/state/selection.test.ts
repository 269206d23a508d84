import { expect, test } from "vitest";
import { chooseStack, fitSelection, pageSelection, stepLayer, togglePin } from "../../src/state/selection";
import { examplePage, tokens } from "../examples/page";

const { page } = examplePage({}, { name: "cross", heads: 2, layers: [1, 4], query: tokens(["a", "b", "c", "d"]) });
const start = pageSelection(page);
const [self] = page.stacks;
const heads = (...chosen: number[]) => ({ ...start, heads: chosen });

test("a page opens as it says", () => {
  expect(start).toEqual(page.selection);
  expect(start).toMatchObject({ view: "head", stack: "self", layer: 0, heads: null, query: [], sinks: true });
});

test("layers are stepped through as the stack has them and the ends hold", () => {
  const [stack] = page.stacks;
  expect(stepLayer(start, 1, stack).layer).toBe(2);
  expect(stepLayer({ ...start, layer: 2 }, 1, stack).layer).toBe(5);
  expect(stepLayer({ ...start, layer: 5 }, 1, stack).layer).toBe(5);
  expect(stepLayer({ ...start, layer: 2 }, -1, stack).layer).toBe(0);
  expect(stepLayer(start, -1, stack)).toBe(start);
});

test("another stack keeps what it can of the selection", () => {
  const before = {
    ...start,
    layer: 5,
    heads: [1, 2],
    filter: "ab",
    hide_special: true,
    query: [1],
    key: [6],
  } as const;
  expect(chooseStack(before, "cross", page)).toEqual({
    ...before,
    stack: "cross",
    layer: 4,
    heads: [1],
    filter: "all",
    query: [],
    key: [],
  });
  expect(chooseStack(before, "self", page)).toBe(before);
  expect(chooseStack(heads(2), "cross", page).heads).toBeNull();
});

const PIN = { side: "key", token: 6 } as const;

test("a click on the pinned token releases it, on another one of its side moves the pin", () => {
  const pinned = togglePin(start, PIN);
  expect(pinned).toMatchObject({ query: [], key: [6] });
  expect(togglePin(pinned, PIN).key).toEqual([]);
  expect(togglePin(pinned, { side: "key", token: 0 }).key).toEqual([0]);
  expect(togglePin(pinned, { side: "query", token: 0 })).toMatchObject({ query: [0], key: [6] });
});

test("shift pins tokens beside each other, and releases them one by one", () => {
  const two = togglePin(togglePin(start, PIN), { side: "key", token: 0 }, true);
  expect(two.key).toEqual([0, 6]);
  expect(togglePin(two, PIN, true).key).toEqual([0]);
  expect(togglePin(two, PIN).key).toEqual([6]);
});

test("what the page cannot show is brought to the nearest that it can", () => {
  const fit = fitSelection(
    { ...start, stack: "none", layer: 3, heads: [7, 2, -1, 2, 1.5], query: [5, 4, 4, -1, 0.5] },
    page,
  );
  expect(fit).toMatchObject({ stack: "self", layer: 2, heads: [2], query: [4] });
  expect(fitSelection({ ...start, heads: [] }, page).heads).toBeNull();
  expect(fitSelection({ ...start, key: [6, 0] }, page).key).toEqual([0, 6]);
});

test("several heads stand side by side, never over each other", () => {
  const several = fitSelection({ ...start, view: "matrix", layer: 2, heads: [0, 2] }, page);
  expect(several).toMatchObject({ view: "compare", tray: ["2-0 view=matrix", "2-2 view=matrix"] });
  expect(fitSelection({ ...start, view: "head", heads: [1] }, page).view).toBe("head");
});

test("a drawing that the stack has not gives way to the usual one", () => {
  expect(fitSelection({ ...start, view: "neuron" }, page).view).toBe("matrix");
  const long = { ...page, stacks: [{ ...self, sentences: { query: [0, 3], key: [0, 3] } }] };
  for (const view of ["head", "neuron", "matrix"] as const)
    expect(fitSelection({ ...start, view }, long).view).toBe("matrix");
});
