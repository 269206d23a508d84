// @vitest-environment jsdom
import axe from "axe-core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fakeCanvas } from "../canvas";
import { exampleEvidence } from "../examples/evidence";
import { writeInline } from "../examples/inline";
import { type Example, examplePage } from "../examples/page";
import { soon } from "../soon";

beforeEach(() => {
  vi.resetModules();
  fakeCanvas(900);
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

test("tiles say their labels, with interval and number of texts", async () => {
  const root = await open(exampleEvidence(), "v=2&view=head");
  const tile = (name: string) => one(root, `[data-tile="${name}"]`).getAttribute("aria-label");
  await soon(() => expect(tile("0-1")).toMatch(/; next \.80, 95 % interval \.78 to \.81 over 24 texts$/));
  expect(one(root, '[data-tile="0-1"]').title).toBe(tile("0-1"));
  expect(tile("0-0")).not.toContain("interval");
});

test("the card beside the head view has evidence, examples and pairs that pin themselves", async () => {
  const root = await open(exampleEvidence(), "v=2&heads=1");
  const card = await soon(() => one(root, '[data-head-card="0-1"]'));
  const label = one(card, '[data-evidence-of="next"]');
  expect(label.textContent).toMatch(/next\.80\[\.78, \.81\].*does next.*baseline \.07 \(uniform\) · threshold \.50/);
  expect(label.textContent).toMatch(/2\.5 standard deviations above it · p < \.001 · 24 texts/);
  expect([...label.querySelectorAll(".texts li")].map(({ textContent }) => textContent)).toEqual([
    ".90 another text",
    ".70 one text",
  ]);
  expect(one(label, '[role="img"]').getAttribute("aria-label")).toMatch(
    /next \.80, from \.78 to \.81, baseline \.07, threshold \.50/,
  );
  expect(card.textContent).toContain("1 pattern without a label");
  expect(card.textContent).toContain("95 % intervals over 24 texts");
  one(label, '[data-pair="2-3"]').click();
  await soon(() => expect(location.hash).toBe("#v=2&heads=1&query=2&key=3"));
});

test("what was seen on one text only says so, everywhere", async () => {
  const caution = "Seen on one text only: nothing can be said of others";
  const root = await open(exampleEvidence({ texts: 1, caution }), "v=2&heads=1");
  const card = await soon(() => one(root, '[data-head-card="0-1"]'));
  expect(one(card, ".caution").textContent).toBe(`${caution}.`);
  const label = one(card, "[data-candidate]");
  expect(label.textContent).toContain("seen on one text only");
  expect(label.textContent).not.toMatch(/\[|NaN|p </);
  expect(card.textContent).not.toContain("NaN");
  expect(one(root, '[data-tile="0-1"]').getAttribute("aria-label")).toMatch(/next \.80, seen on one text only$/);
});

test("what too few texts show is a candidate, and the length of the texts is said", async () => {
  const caution = "8 texts are too few to tell 18 scores from chance; give 9 or more";
  const root = await open(exampleEvidence({ texts: 8, candidates: true, caution }), "v=2&heads=1");
  const card = await soon(() => one(root, '[data-head-card="0-1"]'));
  expect(one(card, ".caution").textContent).toBe(`${caution}.`);
  expect(one(card, "[data-candidate]").textContent).toContain("a candidate: too few texts to tell");
  expect(card.textContent).toContain("over 8 texts of 13 tokens");
  expect(one(root, '[data-tile="0-1"]').getAttribute("aria-label")).toMatch(/over 8 texts, a candidate: too few/);
});

test("a page without evidence has neither tab nor card", async () => {
  const root = await open(examplePage(), "v=2&view=scatter");
  expect(root.querySelector("[data-head-card], [data-evidence]")).toBeNull();
});

test("names and texts are text, whatever they hold", async () => {
  const hostile = ["<img src=x onerror='window.pwned = 1'>", "</script><script>window.pwned = 1</script>"] as const;
  const example = exampleEvidence({ names: hostile, examples: [...hostile] });
  for (const view of ["matrix", "head"]) {
    document.body.innerHTML = '<div id="headscope"></div>';
    vi.resetModules();
    const root = await open(example, `v=2&view=${view}&heads=1`);
    await soon(() => one(root, "[data-evidence], [data-head-card]"));
    expect(root.querySelector("script, img")).toBeNull();
    expect(root.textContent).toContain(hostile[0]);
  }
  expect(Reflect.get(window, "pwned")).toBeUndefined();
});

test.each(["head", "matrix", "text"])("axe finds nothing wrong: %s", async (view) => {
  const root = await open(exampleEvidence({ texts: 1, caution: "Seen once" }), `v=2&view=${view}&heads=1`);
  await soon(() => one(root, ".label-evidence"));
  document.documentElement.lang = "en";
  document.title = "An example";
  const { violations } = await axe.run(document, { rules: { "color-contrast": { enabled: false } } });
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
});
