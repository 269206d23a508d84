import { expect, test } from "vitest";
import { examplePage, tokens } from "../../src/examples/page";
import {
  chooseStack,
  chosenHeads,
  fitSelection,
  pageSelection,
  soloHead,
  stepLayer,
  toggleHead,
  togglePin,
} from "../../src/state/selection";

const { page } = examplePage({}, { name: "cross", heads: 2, layers: [1, 4], query: tokens(["a", "b", "c", "d"]) });
const start = pageSelection(page);
const heads = (...chosen: number[]) => ({ ...start, heads: chosen });

test("a page opens as it says", () => {
  expect(start).toEqual({
    stack: "self",
    layer: 0,
    heads: null,
    filter: "all",
    mute: false,
    share: null,
    pin: null,
    theme: "auto",
  });
});

test("a head is switched off and on again", () => {
  expect(toggleHead(start, 1, 3).heads).toEqual([0, 2]);
  expect(toggleHead(heads(2), 0, 3).heads).toEqual([0, 2]);
  expect(toggleHead(heads(0, 2), 1, 3).heads).toBeNull();
});

test("the last head stays on", () => {
  expect(toggleHead(heads(0), 0, 3).heads).toEqual([0]);
  expect(toggleHead({ ...start, heads: null }, 0, 1).heads).toBeNull();
});

test("solo shows one head, and all again where it was the only one", () => {
  expect(soloHead(start, 0, 3).heads).toEqual([0]);
  expect(soloHead(heads(0, 2), 2, 3).heads).toEqual([2]);
  expect(soloHead(heads(2), 2, 3).heads).toBeNull();
  expect(soloHead(heads(2), 1, 3).heads).toEqual([1]);
});

test("a double click on a chip is two toggles and a solo", () => {
  for (const before of [start, heads(0), heads(1), heads(0, 1)]) {
    const twice = toggleHead(toggleHead(before, 1, 3), 1, 3);
    expect(chosenHeads(twice.heads, 3)).toEqual(chosenHeads(before.heads, 3));
  }
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
  const before = { ...start, layer: 5, heads: [1, 2], filter: "ab", mute: true, share: 40, pin: PIN } as const;
  expect(chooseStack(before, "cross", page)).toEqual({
    ...before,
    stack: "cross",
    layer: 4,
    heads: [1],
    filter: "all",
    pin: null,
  });
  expect(chooseStack(before, "self", page)).toBe(before);
  expect(chooseStack(heads(2), "cross", page).heads).toBeNull();
});

const PIN = { side: "key", token: 6 } as const;

test("a click on the pinned token releases it, on another one moves the pin", () => {
  expect(togglePin(start, PIN).pin).toEqual(PIN);
  expect(togglePin({ ...start, pin: PIN }, PIN).pin).toBeNull();
  expect(togglePin({ ...start, pin: PIN }, { side: "query", token: 6 }).pin?.side).toBe("query");
});

test("what the page cannot show is brought to the nearest that it can", () => {
  const fit = fitSelection(
    { ...start, stack: "none", layer: 3, heads: [7, 2, -1, 2, 1.5], share: 0.5, pin: { side: "query", token: 5 } },
    page,
  );
  expect(fit).toMatchObject({ stack: "self", layer: 2, heads: [2], share: null, pin: null });
  expect(fitSelection({ ...start, heads: [] }, page).heads).toBeNull();
  expect(fitSelection({ ...start, pin: PIN }, page).pin).toEqual(PIN);
});
