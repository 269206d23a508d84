// @vitest-environment jsdom
import axe from "axe-core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { exampleEvidence } from "../../src/examples/evidence";
import { writeInline } from "../../src/examples/inline";
import { type Example, examplePage } from "../../src/examples/page";
import { fakeCanvas } from "../canvas";
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

const names = (root: ParentNode, selector: string, name: string) =>
  [...root.querySelectorAll<HTMLElement>(selector)].map((element) => element.dataset[name]);

test("tiles say their labels, with interval and number of texts", async () => {
  const root = await open(exampleEvidence(), "v=2&view=model");
  const cell = await soon(() => {
    const found = one(root, '[data-cell="0-1"]');
    expect(found.querySelectorAll(".tile-label")).toHaveLength(1);
    return found;
  });
  expect(cell.getAttribute("aria-label")).toMatch(/; next \.80, 95 % interval \.78 to \.81 over 24 texts$/);
  expect(cell.title).toContain("interval .78 to .81 over 24 texts");
  expect(one(root, '[data-cell="5-0"]').querySelectorAll(".tile-label")).toHaveLength(2);
  expect(one(root, '[data-cell="0-0"]').querySelector(".tile-label")).toBeNull();
  expect(one(root, "[data-told]").textContent).toBe("3 of 9 heads with a label · 24 texts");
  expect(root.querySelector("[data-caution]")).toBeNull();
});

test("heads that are not asked for are dimmed, and the link says what was asked", async () => {
  const root = await open(exampleEvidence(), "v=2&view=model");
  const dimmed = () => names(root, "[data-dim]", "cell");
  const chip = await soon(() => one(root, '[data-label="next"]'));
  expect(dimmed()).toEqual([]);
  chip.click();
  await soon(() => expect(dimmed()).toHaveLength(7));
  expect(dimmed()).not.toContain("0-1");
  expect(location.hash).toBe("#v=2&view=model&label=next");
  expect(one(root, "[data-told]").textContent).toContain("2 of 9 heads stand out");
  const least = one(root, "[data-min-score]") as HTMLInputElement;
  least.value = "70";
  least.dispatchEvent(new Event("input", { bubbles: true }));
  await soon(() => expect(dimmed()).toHaveLength(8));
  expect(location.hash).toBe("#v=2&view=model&label=next&min_score=70");
  chip.click();
  least.value = "0";
  least.dispatchEvent(new Event("input", { bubbles: true }));
  await soon(() => expect(dimmed()).toEqual([]));
  await soon(() => expect(location.hash).toBe("#v=2&view=model"));
});

test("heads are sorted by a measure and keep their names", async () => {
  const root = await open(exampleEvidence(), "v=2&view=model&sort=entropy");
  const cells = () => names(root, ".ranked [data-cell]", "cell");
  await soon(() => expect(cells()).toEqual(["5-0", "0-2", "2-0", "5-2", "0-0", "5-1", "2-1", "2-2", "0-1"]));
  expect(one(root, '[data-cell="2-0"]').textContent).toMatch(/^2-0 2\.25/);
  expect(names(root, '.ranked [tabindex="0"]', "cell")).toEqual(["0-2"]);
  await soon(() => {
    // how many stand in a row is known once the width was measured
    one(root, '[data-cell="0-2"]').focus();
    one(root, '[data-cell="0-2"]').dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    expect((root.activeElement as HTMLElement).dataset.cell).toBe("2-0");
  });
  one(root, "[data-sort-end]").click();
  await soon(() => expect(cells()[0]).toBe("0-1"));
  expect(location.hash).toBe("#v=2&view=model&sort=-entropy");
  one(root, '[data-cell="2-1"]').click();
  await soon(() => expect(location.hash).toBe("#v=2&layer=2&heads=1&sort=-entropy"));
});

test("dots are previewed, chosen and walked with the keyboard", async () => {
  const root = await open(exampleEvidence(), "v=2&view=scatter");
  const card = await soon(() => one(root, "[data-head-card]"));
  expect(root.querySelectorAll("[data-dot]")).toHaveLength(9);
  expect(card.dataset.headCard).toBe("");
  const dot = one(root, '[data-dot="5-0"]');
  expect(dot.getAttribute("aria-label")).toMatch(
    /^Head 5-0: distance 7\.00 tokens, entropy 3\.00 nats; next \.60, 95 %/,
  );
  dot.dispatchEvent(new Event("pointerenter"));
  await soon(() => expect(card.dataset.headCard).toBe("5-0"));
  expect(location.hash).toBe("#v=2&view=scatter");
  dot.click();
  await soon(() => expect(dot.getAttribute("aria-pressed")).toBe("true"));
  expect(location.hash).toBe("#v=2&view=scatter&layer=5&heads=0");
  expect(root.querySelectorAll('.dot[tabindex="0"]')).toHaveLength(1);
  dot.focus();
  dot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  expect((root.activeElement as HTMLElement).dataset.dot).not.toBe("5-0");
  expect(root.querySelectorAll('.dot[tabindex="0"]')).toHaveLength(1);
  dot.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
  await soon(() => expect(location.hash).toBe("#v=2&layer=5&heads=0"));
});

test("axes are chosen, or the map, which says how far it can be trusted", async () => {
  const root = await open(exampleEvidence(), "v=2&view=scatter&x=same&y=class%20vertical");
  await soon(() => expect(one(root, "[data-scatter]").dataset.scatter).toBe("same,class vertical"));
  expect(one(root, ".title-y").textContent).toBe("share of vertical maps");
  const across = one(root, '[data-axis="x axis"]') as HTMLSelectElement;
  across.value = "map";
  across.dispatchEvent(new Event("change", { bubbles: true }));
  await soon(() => expect(one(root, "[data-scatter]").dataset.scatter).toBe("map"));
  expect(one(root, "[data-map-note]").textContent).toMatch(/from 4 of its 5 queries.*Stress 0\.31: a poor map/);
  expect(root.querySelector('[data-axis="y axis"]')).toBeNull();
});

test("the card beside the head view has evidence, examples and pairs that pin themselves", async () => {
  const root = await open(exampleEvidence(), "v=2&heads=1");
  const card = await soon(() => one(root, '[data-head-card="0-1"]'));
  const label = one(card, '[data-evidence-of="next"]');
  expect(label.textContent).toMatch(/next\.80\[\.78, \.81\].*does next.*baseline \.07 \(uniform\) · threshold 0\.5/);
  expect(label.textContent).toMatch(/2\.5 standard deviations above it · p < \.001 · 24 texts/);
  expect([...label.querySelectorAll(".texts li")].map(({ textContent }) => textContent)).toEqual([
    ".90 another text",
    ".70 one text",
  ]);
  expect(one(label, '[role="img"]').getAttribute("aria-label")).toMatch(
    /next \.80, 95 %.*baseline \.07, threshold 0\.5/,
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
  one(root, '[data-option="model"]').click();
  await soon(() => expect(one(root, "[data-caution]").textContent).toBe(`${caution}.`));
  expect(one(root, '[data-cell="0-1"]').getAttribute("aria-label")).toMatch(/next \.80, seen on one text only$/);
  expect(root.querySelectorAll(".tile-label:not([data-candidate])")).toHaveLength(0);
});

test("what too few texts show is a candidate, and the length of the texts is said", async () => {
  const caution = "8 texts are too few to tell 18 scores from chance; give 9 or more";
  const root = await open(exampleEvidence({ texts: 8, candidates: true, caution }), "v=2&heads=1");
  const card = await soon(() => one(root, '[data-head-card="0-1"]'));
  expect(one(card, ".caution").textContent).toBe(`${caution}.`);
  expect(one(card, "[data-candidate]").textContent).toContain("a candidate: too few texts to tell");
  expect(card.textContent).toContain("over 8 texts of 13 tokens");
  one(root, '[data-option="model"]').click();
  await soon(() => expect(one(root, "[data-caution]").textContent).toBe(`${caution}.`));
  expect(one(root, '[data-cell="0-1"]').getAttribute("aria-label")).toMatch(/over 8 texts, a candidate: too few/);
  expect(root.querySelectorAll(".tile-label:not([data-candidate])")).toHaveLength(0);
});

test("several chosen heads are listed with their labels", async () => {
  const root = await open(exampleEvidence());
  const card = await soon(() => one(root, '[data-head-card=""]'));
  expect(names(card, "[data-open-head]", "openHead")).toEqual(["0-0", "0-1", "0-2"]);
  expect(one(card, '[data-open-head="0-1"]').textContent).toBe("0-1next .80");
  one(card, '[data-open-head="0-1"]').click();
  await soon(() => expect(location.hash).toBe("#v=2&heads=1"));
});

test("another stack has no evidence, and says which one has", async () => {
  const example = examplePage({}, { name: "cross", heads: 2, layers: [1, 4] });
  const root = await open(exampleEvidence({}, example), "v=2&view=scatter");
  await soon(() => one(root, "[data-dot]"));
  one(root, '[data-option="cross"]').click();
  await soon(() => expect(one(root, "[data-no-evidence]").textContent).toContain("“self”"));
  expect(root.querySelector("[data-head-card]")).toBeNull();
});

test("a page without evidence has neither tab nor card", async () => {
  const root = await open(examplePage(), "v=2&view=scatter&label=next");
  expect(root.querySelector('[data-option="scatter"], [data-head-card], [data-evidence], .tile-label')).toBeNull();
  expect(location.hash).toBe("");
});

test("names and texts are text, whatever they hold", async () => {
  const hostile = ["<img src=x onerror='window.pwned = 1'>", "</script><script>window.pwned = 1</script>"] as const;
  const example = exampleEvidence({ names: hostile, examples: [...hostile] });
  for (const view of ["model", "scatter", "head"]) {
    document.body.innerHTML = '<div id="headscope"></div>';
    vi.resetModules();
    const root = await open(example, `v=2&view=${view}&heads=1`);
    await soon(() => one(root, "[data-evidence], [data-head-card]"));
    expect(root.querySelector("script, img")).toBeNull();
    expect(root.textContent).toContain(hostile[0]);
  }
  expect(Reflect.get(window, "pwned")).toBeUndefined();
});

test.each(["model", "scatter", "head", "model&sort=same", "scatter&x=map"])(
  "axe finds nothing wrong: %s",
  async (view) => {
    const root = await open(exampleEvidence({ texts: 1, caution: "Seen once" }), `v=2&view=${view}&heads=1`);
    await soon(() => one(root, ".mark"));
    document.documentElement.lang = "en";
    document.title = "An example";
    const { violations } = await axe.run(document, { rules: { "color-contrast": { enabled: false } } });
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  },
);
