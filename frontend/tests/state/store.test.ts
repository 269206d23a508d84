import { afterEach, expect, test } from "vitest";
import { chooseStack, keepHead, togglePin } from "../../src/state/selection";
import { addToTray, compareClearest, createStore, freeze, headLine, type Store } from "../../src/state/store";
import { EXAMPLES } from "../examples/named";
import { examplePage, exampleSource, tokens } from "../examples/page";
import { BYTES, NORMS, quantityPage, ROLLOUT } from "../quantities";
import { soon } from "../soon";

/** More words than small pictures have cells; one in two goes on. */
const LONG = Array.from({ length: 120 }, (_, at) => (at % 2 ? "berries" : `t${at}`));

const stores: Store[] = [];
afterEach(() => {
  for (const store of stores.splice(0)) store.destroy();
});

async function loaded(example = examplePage(), wanted = {}): Promise<Store> {
  const store = createStore(exampleSource(example), wanted);
  stores.push(store);
  await soon(() => expect(store.shown.value).not.toBeNull());
  return store;
}

test("a layer is shown when it has come, with the newest one winning", async () => {
  const example = examplePage();
  const waiting = new Map<string, () => void>();
  const source = {
    ...exampleSource(example),
    chunk: (name: string) =>
      new Promise<Uint8Array<ArrayBuffer>>((resolve) => {
        waiting.set(name, () => resolve(example.chunks.get(name) ?? new Uint8Array()));
      }),
  };
  const store = createStore(source);
  stores.push(store);
  store.choose({ layer: 5 });
  await soon(() => expect(waiting.has("weights/self/5")).toBe(true));
  waiting.get("weights/self/5")?.();
  await soon(() => expect(store.shown.value?.layer.layer).toBe(5));
  waiting.get("weights/self/0")?.();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(store.shown.value?.layer.layer).toBe(5);
});

test("lines are what is above the even share", async () => {
  const store = await loaded();
  const [weights, cutoffs] = [store.weights.value, store.cutoffs.value];
  const above = [...(weights?.bytes(0) ?? [])].filter((byte, at) => byte >= cutoffs[Math.floor(at / 7)]);
  expect(store.summary.value.lines).toBe(above.length);
  // An even share of seven keys is a byte of 96.
  expect(new Set(cutoffs)).toEqual(new Set([97]));
});

test("the overview shows the clearest head, the pointed one, or the kept one, and leaves with it", async () => {
  const store = await loaded(EXAMPLES.overview.make(), { view: "overview" });
  await soon(() => expect(store.kinds.value?.left).toBe(0));
  await soon(() => expect(store.head.value).toBe(0));
  expect(store.full.value).toBe(0);
  store.peeked.value = 13;
  await soon(() => expect(store.shown.value?.layer.layer).toBe(2));
  expect([store.head.value, store.selection.value.heads]).toEqual([3, null]);
  store.peeked.value = null;
  store.select((now) => keepHead(now, 7, store.stack.value));
  await soon(() => expect(store.shown.value?.layer.layer).toBe(1));
  expect(store.head.value).toBe(2);
  store.select((now) => ({ ...now, view: "head" }));
  expect(store.selection.value).toMatchObject({ layer: 1, heads: [2] });
});

test("leaving the overview before anything was chosen keeps the head it opened on", async () => {
  const store = await loaded(EXAMPLES.overview.make(), { view: "overview" });
  await soon(() => expect(store.kinds.value?.left).toBe(0));
  store.select((now) => ({ ...now, view: "matrix" }));
  expect(store.selection.value).toMatchObject({ view: "matrix", layer: 0, heads: [0] });
});

test("a page that knows nothing of kinds has no overview", async () => {
  const store = await loaded(examplePage(), { view: "overview" });
  expect(store.view.value).toBe("head");
});

test("Escape shows heads of all kinds again", async () => {
  const store = await loaded(EXAMPLES.overview.make(), { view: "overview", kind: "next" });
  store.release();
  expect(store.selection.value.kind).toBeNull();
});

test("the tray takes the head in full, each picture once, and six at most", async () => {
  const store = await loaded(EXAMPLES.overview.make(), { view: "overview" });
  await soon(() => expect(store.kinds.value?.left).toBe(0));
  freeze(store);
  const first = headLine(store, store.full.value ?? -1);
  expect(store.selection.value.tray).toEqual([first]);
  freeze(store);
  expect([store.selection.value.tray.length, store.said.value]).toEqual([1, `${first} is in the tray already`]);
  for (const layer of ["0", "0 view=matrix", "0 view=text", "0 hide_special=1", "0 sinks=0"]) addToTray(store, layer);
  expect(store.said.value).toBe("0 sinks=0 added to compare, 6 of 6");
  addToTray(store, "0 query=1");
  expect([store.selection.value.tray.length, store.said.value]).toEqual([6, "The tray is full: it holds 6 pictures"]);
  compareClearest(store);
  expect(store.view.value).toBe("compare");
  expect(store.selection.value.tray[0]).toMatch(/^\d+-\d+$/);
});

test("muting says what it hides", async () => {
  const store = await loaded();
  expect(store.mutedPart.value).toBe(0);
  store.select((now) => ({ ...now, hide_special: true }));
  expect(store.mutedPart.value).toBeGreaterThan(0.1);
  expect(store.mutedPart.value).toBeLessThan(1);
});

test("a pin goes before a hover, and a token that takes no part has no focus", async () => {
  const store = await loaded();
  store.preview({ query: 1 });
  expect(store.focus.value).toEqual({ side: "query", tokens: [1] });
  store.select((now) => togglePin(now, { side: "key", token: 6 }));
  expect(store.focus.value).toEqual({ side: "key", tokens: [6] });
  expect(store.pair.value).toEqual({ query: 1, key: 6 });
  store.release();
  expect(store.focus.value).toBeNull();
  store.select((now) => ({ ...now, hide_special: true }));
  store.preview({ key: 0 });
  expect(store.focus.value).toBeNull();
});

test("heads of another stack are clipped to those it has", async () => {
  const store = await loaded(examplePage({}, { name: "cross", heads: 2, layers: [4] }), { heads: [1, 2] });
  store.select((now) => chooseStack(now, "cross", store.page));
  await soon(() => expect(store.shownStack.value?.name).toBe("cross"));
  expect(store.head.value).toBe(1);
});

test("a chunk that is missing is the store's failure", async () => {
  const example = examplePage();
  const store = createStore(exampleSource({ ...example, chunks: new Map() }));
  stores.push(store);
  await soon(() => expect(String(store.failure.value)).toContain("weights/self/0"));
});

test("the theme follows the system until it is chosen", async () => {
  const store = await loaded();
  store.systemDark.value = true;
  expect(store.dark.value).toBe(true);
  const night = store.color.value;
  store.select((now) => ({ ...now, theme: "light" }));
  expect(store.dark.value).toBe(false);
  expect(store.color.value).not.toEqual(night);
});

async function showing(store: Store, quantity: string): Promise<void> {
  store.select((now) => ({ ...now, quantity }));
  await soon(() => expect(store.quantity.value.name).toBe(quantity));
}

test("the chosen quantity takes the place of the weights, which stay", async () => {
  const store = await loaded(quantityPage(), { heads: [2], query: [1] });
  const weights = store.weights.value;
  await showing(store, "contribution");
  expect(store.weights.value).toBe(weights);
  const row = weights?.row(2, 1) ?? new Float32Array();
  expect([...(store.attention.value ?? [])]).toEqual(
    [...row].map((weight, key) => expect.closeTo(weight * NORMS[2 * 7 + key], 6)),
  );
  await showing(store, "difference");
  expect(store.lineInks.value).toHaveLength(2);
  expect(store.attention.value?.some((value) => value < 0)).toBe(true);
});

test("a quantity of the whole layer has one map whatever heads are chosen", async () => {
  const store = await loaded(quantityPage(), { quantity: "rollout", heads: [2], query: [4] });
  expect(store.quantity.value).toEqual(ROLLOUT);
  expect([store.head.value, store.map.value]).toEqual([2, 0]);
  const wanted = [...BYTES.rollout.subarray(28, 35)].map((byte) => expect.closeTo(0.5 * (byte / 255) ** 2, 6));
  expect([...(store.attention.value ?? [])]).toEqual(wanted);
});

test("a layer that has not the quantity shows weights, and the next one has it again", async () => {
  const store = await loaded(quantityPage(), { quantity: "rollout" });
  store.choose({ layer: 5 });
  await soon(() => expect(store.shown.value?.layer.layer).toBe(5));
  expect([store.quantity.value.name, store.selection.value.quantity]).toEqual(["weight", "rollout"]);
  expect(store.values.value).toBe(store.weights.value);
  store.choose({ layer: 2 });
  await soon(() => expect(store.quantity.value.name).toBe("rollout"));
});

test("value norms are those of the head", async () => {
  const store = await loaded(quantityPage(), { heads: [1] });
  expect(store.valueNorms.value?.values[3]).toBeCloseTo(NORMS[7 + 3], 6);
  store.choose({ layer: 5 });
  await soon(() => expect(store.valueNorms.value).toBeNull());
});

test("a step is undone and done again; what moves little by little is no step", async () => {
  const store = await loaded();
  const first = store.selection.value;
  store.choose({ layer: 5 });
  store.choose({ zoom: [1, 0, 3] });
  store.choose({ view: "matrix" });
  store.undo(false);
  expect(store.selection.value).toMatchObject({ view: "head", layer: 5, zoom: [1, 0, 3] });
  store.undo(false);
  expect(store.selection.value).toEqual(first);
  store.undo(false);
  expect(store.selection.value).toEqual(first);
  store.undo(true);
  expect(store.selection.value).toMatchObject({ view: "head", layer: 5 });
  store.choose({ query: [1] });
  store.undo(true);
  expect(store.selection.value).toMatchObject({ layer: 5, query: [1] });
});

test("small pictures are of whole words too where every pair has a cell, and of pieces where it has none", async () => {
  const store = await loaded(examplePage(), { words: true });
  await soon(() => expect(store.thumbs.value).not.toBeNull());
  const words = store.stack.value.key.labels;
  expect(words).toContain("strawberries");
  expect(store.thumbs.value?.keys).toBe(words.length);
  store.choose({ words: false });
  expect(store.thumbs.value?.keys).toBe(words.length + 1);

  const example = examplePage({ query: tokens(LONG), key: tokens(LONG) });
  const [self] = example.page.stacks;
  const pooled = { ...self, thumbs: { ...self.thumbs, shape: [3, 3, 48, 48] } };
  const bytes = new Uint8Array(3 * 3 * 48 * 48).fill(7);
  const chunks = new Map(example.chunks).set("thumbs/self", bytes);
  const long = await loaded({ page: { ...example.page, stacks: [pooled] }, chunks }, { words: true });
  await soon(() => expect(long.thumbsLeft.value).toBe(0));
  expect([long.thumbs.value?.heads, long.thumbs.value?.queries]).toEqual([9, 48]);
  expect(long.thumbs.value?.bytes(4)).toEqual(bytes.slice(0, 48 * 48));
});
