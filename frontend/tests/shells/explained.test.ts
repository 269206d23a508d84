// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fakeCanvas } from "../canvas";
import { writeInline } from "../examples/inline";
import { type Example, examplePage, tokens } from "../examples/page";
import { soon } from "../soon";

// What a page says of itself: help, hints, search, words, means, and heads of large models.

beforeEach(() => {
  vi.resetModules();
  fakeCanvas(60, () => undefined);
  localStorage.clear();
  history.replaceState(null, "", "/");
  document.body.innerHTML = '<div id="headscope"></div>';
});

afterEach(() => vi.restoreAllMocks());

async function open(example: Example, fragment = ""): Promise<ShadowRoot> {
  await writeInline(document, example);
  if (fragment) history.replaceState(null, "", `#${fragment}`);
  await import("../../src/shells/page");
  const root = document.getElementById("headscope")?.shadowRoot;
  if (!root) throw new Error("nothing was mounted");
  await soon(() => one(root, "[data-ready]"));
  return root;
}

function one(root: ParentNode, selector: string): HTMLElement {
  const found = root.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no ${selector}`);
  return found;
}

const press = (key: string) => document.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
const type = (root: ParentNode, selector: string, value: string, event: string) => {
  const field = one(root, selector) as HTMLInputElement;
  field.value = value;
  field.dispatchEvent(new Event(event, { bubbles: true }));
};

test("? opens the sheet of keys and marks, Escape closes it and keeps what is pinned", async () => {
  const root = await open(examplePage(), "v=2&query=2");
  press("?");
  const sheet = await soon(() => one(root, "[data-help]"));
  expect(sheet.textContent).toMatch(/Keys.*find a token.*Marks.*sink/);
  press("Escape");
  await soon(() => expect(root.querySelector("[data-help]")).toBeNull());
  expect(location.hash).toBe("#v=2&query=2");
  one(root, "[data-help-open]").click();
  await soon(() => one(root, "[data-help]"));
});

test("/ finds tokens, and Enter pins one after the other", async () => {
  const root = await open(examplePage());
  press("/");
  await soon(() => one(root, "[data-search]"));
  type(root, "[data-search]", "WE", "input");
  await soon(() => expect(one(root, "[data-search-said]").textContent).toBe("2 tokens"));
  const enter = (shiftKey = false) =>
    one(root, "[data-search]").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, shiftKey }));
  enter();
  await soon(() => expect(location.hash).toBe("#v=2&query=1"));
  await soon(() => expect(one(root, "[data-search-said]").textContent).toBe("1 of 2"));
  enter();
  await soon(() => expect(location.hash).toBe("#v=2&query=2"));
  type(root, "[data-search]", "straw", "input");
  await soon(() => expect(one(root, "[data-search-said]").textContent).toBe("1 token"));
  enter();
  await soon(() => expect(location.hash).toBe("#v=2&key=1"));
  type(root, "[data-search]", "[x]", "input");
  await soon(() => expect(one(root, "[data-search-said]").textContent).toBe("0 tokens"));
  one(root, "[data-search]").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  await soon(() => expect(root.querySelector("[data-search]")).toBeNull());
});

test("whole words say how they are made", async () => {
  const root = await open(examplePage(), "v=2&query=1&words=1");
  expect(one(root, "[data-words-note]").textContent).toMatch(/^Whole words: a word gets the sum .* gives the mean/);
  one(root, "[data-words]").click();
  await soon(() => expect(root.querySelector("[data-words-note]")).toBeNull());
});

test("whole words join the pieces in columns, numbers and pins", async () => {
  const root = await open(examplePage(), "v=2&query=1&key=2&words=1");
  const keys = () => [...root.querySelectorAll('[data-side="key"] .label')].map(({ textContent }) => textContent);
  expect(keys()).toEqual(["[CLS]", "strawberries", ".", "[SEP]", "yes", "no"]);
  expect(one(root, '[data-side="key"][data-token="1"]').dataset.litSelf).toBe("pin");
  one(root, '[data-side="key"][data-token="2"]').click();
  await soon(() => expect(location.hash).toMatch(/key=3/));
  one(root, "[data-words]").click();
  await soon(() => expect(keys()).toContain("straw"));
});

test("the card says who looks, how much it sees, and numbers in pairs", async () => {
  const root = await open(examplePage(), "v=2&heads=1&query=2");
  expect(one(root, "[data-chosen]").textContent).toMatch(/went.*looks at/);
  expect(one(root, "[data-sentence]").textContent).toBe("it sees 7 tokens; even: .14 each");
  expect(one(root, "[data-listed]").textContent).toMatch(/\.\d+\d?\.?\d* ×$/);
});

test("several pinned queries are shown by their mean or their sum", async () => {
  const root = await open(examplePage(), "v=2&heads=1&query=1,2");
  const number = () => Number(one(root, "[data-listed] .number").textContent);
  const mean = number();
  expect(one(root, "[data-chosen]").textContent).toMatch(/and 1 more, their mean/);
  type(root, "[data-pinned]", "sum", "change");
  await soon(() => expect(one(root, "[data-chosen]").textContent).toMatch(/their sum/));
  expect(number()).toBeCloseTo(2 * mean, 1);
});

const MANY = 40;
const large = () =>
  examplePage({
    heads: MANY,
    layers: [0, 1, 3],
    kinds: (layer, head) => ({ kind: head % 3, score: 0.5, sharpness: (layer + head) / MANY, special: 0.2 }),
  });

test("tiles that are too small are one colour, and arrows go from one to the next", async () => {
  const root = await open(large(), "v=2&view=head&layer=1&heads=3");
  const map = await soon(() => one(root, "[data-heat]"));
  expect(root.querySelectorAll(".tile").length).toBe(0);
  map.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
  await soon(() => expect(location.hash).toMatch(/layer=1&heads=4/));
  map.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true, cancelable: true }));
  await soon(() => expect(location.hash).toMatch(/layer=3&heads=4/));
});

test("layers without attention are hatched lines with the reason", async () => {
  const example = examplePage();
  example.page.stacks[0].absent = [{ layer: 1, why: "it has linear attention" }];
  const root = await open(example);
  const line = one(root, ".no-attention");
  expect(line.title).toBe("Layer 1: it has linear attention");
  expect(Number.parseFloat(line.style.top)).toBeGreaterThan(
    Number.parseFloat(one(root, '[data-tile="0-0"]').style.top),
  );
});

test("a long text scrolls in a box of its own, with multiples of the even share", async () => {
  const words = tokens(Array.from({ length: 220 }, (_, at) => `w${at}`));
  const root = await open(examplePage({ layers: [0], heads: 1, query: words, key: words }), "v=2&view=text");
  expect(root.querySelectorAll(".text-scroll [data-token]").length).toBe(220);
  one(root, "[data-minimap]");
  expect(one(root, "[data-listed] .number").textContent).toMatch(/×$/);
  expect(one(root, ".text-view [data-scale]").textContent).toMatch(/times the even share1 ×8 ×64 ×/);
});
