// @vitest-environment jsdom
import axe from "axe-core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type FakeImageData, fakeCanvas } from "../canvas";
import { writeInline } from "../examples/inline";
import { type Example, examplePage, KEYS, tokens } from "../examples/page";
import { soon } from "../soon";

// The whole page, as a browser would open it. Only what jsdom lacks is put in its place: layout and a canvas.

const LINES_WIDTH = 60;

beforeEach(() => {
  vi.resetModules();
  fakeCanvas(LINES_WIDTH, putImageData);
  putImageData.mockClear();
  history.replaceState(null, "", "/");
  document.body.innerHTML = '<div id="headscope"></div>';
});

afterEach(() => vi.restoreAllMocks());

const putImageData = vi.fn((_: FakeImageData) => undefined);

async function open(example: Example, fragment = ""): Promise<ShadowRoot> {
  await writeInline(document, example);
  if (fragment) history.replaceState(null, "", `#${fragment}`);
  return start();
}

async function start(): Promise<ShadowRoot> {
  await import("../../src/shells/page");
  const root = document.getElementById("headscope")?.shadowRoot;
  if (!root) throw new Error("nothing was mounted");
  return root;
}

async function drawn(root: ShadowRoot): Promise<HTMLElement> {
  return soon(() => one(root, "[data-ready]"));
}

function one(root: ParentNode, selector: string): HTMLElement {
  const found = root.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`no ${selector}`);
  return found;
}

const lineCount = ({ chunks }: Example, name: string) => (chunks.get(name) ?? []).filter((byte) => byte > 0).length;
const token = (root: ParentNode, side: string, at: number) => one(root, `[data-side="${side}"][data-token="${at}"]`);

function choose(root: ParentNode, menu: string, option: string): void {
  const select = one(root, menu) as HTMLSelectElement;
  select.value = option;
  select.dispatchEvent(new Event("change", { bubbles: true }));
}

test("the document takes the colours of the view, for its scroll bars", async () => {
  const root = await open({ ...examplePage() });
  const { style } = document.documentElement;
  expect([style.colorScheme, one(root, "[data-headscope]").dataset.theme]).toEqual(["light", "light"]);
  one(root, "[data-theme-toggle]").click();
  await soon(() => expect(style.colorScheme).toBe("dark"));
});

test("a page opens, draws what is above even and says what it shows", async () => {
  const example = examplePage();
  const root = await open(example);
  const view = await drawn(root);
  expect(view.dataset).toMatchObject({ stack: "self", layer: "0", heads: "0" });
  expect(Number(view.dataset.lines)).toBeLessThan(lineCount(example, "weights/self/0"));
  expect(one(root, "[data-summary]").textContent).toMatch(/^\d+ lines above even · \d+ % of the attention$/);
  expect(one(root, "header").textContent).toMatch(/example\/tiny.*3 layers · 3 heads · 5 → 7 tokens/);
  expect(one(root, "footer").textContent).toMatch(/passes; limit 1\.1e-04\) · error of a weight ≤ \.0039 \(8-bit/);
  expect(one(root, "[data-call]").textContent).toBe('hs.view(record, view="head", layer=0)');
  expect(performance.getEntriesByName("headscope:first-draw")).not.toHaveLength(0);
  const image = putImageData.mock.calls.map(([data]) => data).find(({ width }) => width === LINES_WIDTH);
  expect(image?.data.some((channel) => channel > 0)).toBe(true);
});

test("the layer changes by key, and the link follows", async () => {
  const root = await open(examplePage());
  const view = await drawn(root);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "]" }));
  await soon(() => expect(view.dataset.layer).toBe("2"));
  expect(location.hash).toBe("#v=2&layer=2&heads=0");
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "]" }));
  await soon(() => expect(view.dataset.layer).toBe("5"));
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "[" }));
  await soon(() => expect(view.dataset.layer).toBe("2"));
});

test("pointing at a token shows its numbers, a click keeps them, Escape lets go", async () => {
  const root = await open(examplePage());
  await drawn(root);
  const from = token(root, "query", 2);
  from.dispatchEvent(new Event("pointerover", { bubbles: true }));
  const lit = await soon(() => {
    const found = root.querySelectorAll('[data-side="key"][data-lit]');
    expect(found.length).toBeGreaterThan(2);
    return found;
  });
  for (const element of lit) expect(element.querySelector(".number")?.textContent).toMatch(/^\.\d{2,3}$/);
  await soon(() => expect(one(root, "[data-inspector] strong").textContent).toMatch(/went.*looks at/));
  from.click();
  await soon(() => expect(location.hash).toBe("#v=2&query=2"));
  token(root, "key", 3).dispatchEvent(new Event("pointerover", { bubbles: true }));
  await soon(() => expect(from.dataset.litSelf).toBe("pin"));
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  await soon(() => expect(root.querySelector("[data-lit], [data-lit-self]")).toBeNull());
  expect(location.hash).toBe("");
});

test("tokens are reached and pinned with the keyboard alone", async () => {
  const root = await open(examplePage());
  await drawn(root);
  const press = (key: string) =>
    root.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
  expect(root.querySelectorAll('.token[tabindex="0"]')).toHaveLength(2);
  token(root, "query", 0).focus();
  press("ArrowDown");
  expect(root.activeElement).toBe(token(root, "query", 1));
  press("ArrowRight");
  expect(root.activeElement).toBe(token(root, "key", 1));
  press("Enter");
  await soon(() => expect(token(root, "key", 1).getAttribute("aria-selected")).toBe("true"));
  expect(root.querySelectorAll('.token[tabindex="0"]')).toHaveLength(2);
});

test("muting strikes special tokens through and says what that hides", async () => {
  const example = examplePage();
  const root = await open(example);
  const view = await drawn(root);
  one(root, "[data-hide-special]").click();
  await soon(() => expect(token(root, "key", 4).dataset.hidden).toBe("muted"));
  expect(token(root, "key", 3).dataset.hidden).toBeUndefined();
  const all = lineCount(example, "weights/self/0");
  await soon(() => expect(Number(view.dataset.lines)).toBeLessThan(all));
  await soon(() => expect(one(root, "[data-hidden-part]").textContent).toMatch(/^hides \d+ %$/));
});

test("another stack brings its own tokens, heads and layers", async () => {
  const longer = tokens(["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit"]);
  const root = await open(examplePage({}, { name: "cross", heads: 2, layers: [1, 4], query: KEYS, key: longer }));
  const view = await drawn(root);
  choose(root, "[data-stack-choice]", "cross");
  await soon(() => expect(view.dataset.stack).toBe("cross"));
  expect(view.dataset).toMatchObject({ layer: "1", heads: "0" });
  await soon(() => expect(token(root, "key", 7).textContent).toBe("huit"));
  expect(root.querySelectorAll('[data-side="query"]')).toHaveLength(7);
});

test("a link opens the same picture", async () => {
  const root = await open(examplePage(), "v=2&layer=5&heads=2&key=2&hide_special=1&theme=dark");
  const view = await drawn(root);
  await soon(() => expect(view.dataset).toMatchObject({ layer: "5", heads: "2", theme: "dark" }));
  expect(token(root, "key", 2).dataset.litSelf).toBe("pin");
  expect(location.hash).toBe("#v=2&layer=5&heads=2&key=2&hide_special=1&theme=dark");
});

test("tokens are text, whatever they hold", async () => {
  const hostile = tokens([
    "</script><script>window.pwned = 1</script>",
    '<img src=x onerror="window.pwned = 1">',
    "\u202e",
  ]);
  const root = await open(examplePage({ query: hostile }));
  await drawn(root);
  expect(root.querySelector("script, img")).toBeNull();
  expect(token(root, "query", 0).textContent).toBe(hostile.labels[0]);
  expect(token(root, "query", 2).textContent).toBe("U+202E");
  expect(Reflect.get(window, "pwned")).toBeUndefined();
});

test("rows that sum to less than one are said to", async () => {
  const root = await open(examplePage({ rowSums: "less" }));
  await drawn(root);
  expect(one(root, "[data-sink-note]").textContent).toMatch(/less than 1/);
});

test("a page says how much of the rows was not kept", async () => {
  const root = await open(examplePage({ rowSums: "less", notKept: 0.32 }));
  await drawn(root);
  expect(one(root, "[data-sink-note]").textContent).toMatch(/Not kept: on average 32.%/);
  expect(one(root, "[data-missing]").textContent).toBe("not kept.32");
});

test.each<[string, (example: Example) => Example, RegExp]>([
  [
    "a missing chunk",
    ({ page, chunks }) => ({ page, chunks: new Map([...chunks].filter(([name]) => name !== "weights/self/0")) }),
    /weights\/self\/0.*missing/,
  ],
  ["a newer format", ({ page, chunks }) => ({ page: { ...page, format: 3 as 2 }, chunks }), /format 3/],
  [
    "too few bytes",
    ({ page, chunks }) => ({ page, chunks: new Map([...chunks, ["weights/self/0", new Uint8Array(9)]]) }),
    /9 bytes.*need 105/,
  ],
])("a page with %s says so", async (_, broken, message) => {
  const root = await open(broken(examplePage()));
  const failure = await soon(() => one(root, "[data-failure]"));
  expect(failure.textContent).toMatch(message);
});

test("a page with bad gzip says so", async () => {
  await writeInline(document, examplePage());
  one(document, '[data-chunk="weights/self/0"]').textContent = btoa("no gzip at all");
  const root = await start();
  const failure = await soon(() => one(root, "[data-failure]"));
  expect(failure.textContent).toMatch(/weights\/self\/0.*damaged/);
});

test.each(["matrix", "text", "neuron"])("the %s view opens, draws and is reached by its tab", async (name) => {
  const root = await open(examplePage({ form: "scores", heads: 4, kvHeads: 2 }));
  const view = await drawn(root);
  one(root, `[data-option="${name}"]`).click();
  await soon(() => expect(view.dataset.view).toBe(name));
  expect(location.hash).toBe(`#v=2&view=${name}`);
  expect(root.querySelector("[data-failure]")).toBeNull();
  expect(one(root, "[data-call]").textContent).toContain(`view="${name}"`);
  document.documentElement.lang = "en";
  document.title = "An example";
  const { violations } = await axe.run(document, { rules: { "color-contrast": { enabled: false } } });
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
});

test("a rotary model shows frequency pairs", async () => {
  const { page, chunks } = examplePage({ form: "scores" });
  const rotary = { frequencies: [1, 0.3, 0.1], style: "halves" as const, start: 0 };
  const stacks = page.stacks.map((stack) => ({
    ...stack,
    layers: stack.layers.map((layer) => ({ ...layer, rotary })),
  }));
  const root = await open({ page: { ...page, stacks }, chunks }, "v=2&view=neuron&query=4&key=2");
  await drawn(root);
  choose(root, "[data-neurons]", "pairs");
  await soon(() => expect(location.hash).toContain("neurons=pairs"));
});

test("axe finds nothing wrong (colours and sizes are checked in a browser)", async () => {
  const root = await open(examplePage({}, { name: "cross", heads: 2 }));
  await drawn(root);
  token(root, "query", 2).click();
  document.documentElement.lang = "en";
  document.title = "An example";
  const { violations } = await axe.run(document, { rules: { "color-contrast": { enabled: false } } });
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
});

test.each([
  ["view=model", { view: "overview" }],
  ["view=pair&query=2&key=3", { view: "head" }],
  ["view=scatter&x=map", { view: "overview" }],
  ["view=head&heads=0,2", { view: "compare" }],
])("an old address opens the place that took over: %s", async (fragment, place) => {
  const kinds = (layer: number, head: number) => ({ kind: head % 3, score: 0.5 + layer / 10, sharpness: 0.5 });
  const root = await open(examplePage({ kinds }), `v=2&${fragment}`);
  const view = await drawn(root);
  await soon(() => expect(view.dataset).toMatchObject(place));
});

test("a pinned token turns the map into the pair in all heads", async () => {
  const root = await open(examplePage(), "v=2&view=head&query=2&key=3");
  await drawn(root);
  await soon(() => expect(root.querySelectorAll(".all-heads [data-tile]")).toHaveLength(9));
  expect(one(root, "[data-pair]").textContent).toBe("went → .");
  await soon(() => expect(one(root, "[data-strongest]").textContent).toMatch(/^strongest in \d-\d \.\d+/));
  one(root, '.all-heads [data-tile="5-1"]').click();
  await soon(() => expect(location.hash).toMatch(/layer=5&heads=1/));
});
