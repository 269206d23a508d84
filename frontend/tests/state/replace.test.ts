import { effect } from "@preact/signals-core";
import { afterEach, expect, test } from "vitest";
import type { Source } from "../../src/source/source";
import { follower, movedPins } from "../../src/state/selection";
import { createStore, replaceRecord, type Store } from "../../src/state/store";
import { EXAMPLES } from "../examples/named";
import { type Example, examplePage, exampleSource, tokens } from "../examples/page";
import { soon } from "../soon";

const stores: Store[] = [];
afterEach(() => {
  for (const store of stores.splice(0)) store.destroy();
});

async function loaded(source: Source, wanted = {}): Promise<Store> {
  const store = createStore(source, wanted);
  stores.push(store);
  await soon(() => expect([store.shown.value === null, store.thumbsLeft.value]).toEqual([false, 0]));
  return store;
}

/** A page whose title and tokens say which one it is. */
function titled(title: string, words: readonly string[]): Example {
  const example = examplePage({ query: tokens(words) });
  return { ...example, page: { ...example.page, title } };
}

const FIRST = titled("first", ["[CLS]", "we", "went", "[SEP]"]);
const SECOND = titled("second", ["[CLS]", "well", ",", "we", "went", "[SEP]"]);

/** A source whose chunks come when they are let. */
function held(example: Example) {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  const source: Source = {
    ...exampleSource(example),
    chunk: (name) =>
      new Promise((resolve) => {
        asked.push(name);
        waiting.push(() => resolve(example.chunks.get(name) ?? new Uint8Array()));
      }),
  };
  const letGo = () => {
    for (const go of waiting.splice(0)) go();
  };
  return { source, asked, letGo };
}

test("a record is replaced in one step, and nothing is ever half of one and half of the other", async () => {
  const store = await loaded(exampleSource(FIRST), { layer: 2, heads: [1] });
  const seen = new Set<string>();
  const stop = effect(() => {
    const shown = store.shown.value;
    const rows = store.thumbs.value?.queries;
    const tokensNow = store.stack.value.query.labels.length;
    seen.add([store.page.title, shown?.stack.query.labels.length, rows, tokensNow, store.waiting.value].join());
  });
  expect(await replaceRecord(store, exampleSource(SECOND))).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 20));
  stop();
  const after = [...seen].filter((line) => line.startsWith("second"));
  expect([...seen].filter((line) => line.startsWith("first"))).toEqual(["first,4,4,4,"]);
  expect(after.map((line) => line.replace(/layer 2$/, ""))).toContain("second,6,6,6,");
  for (const line of after) expect(line).toMatch(/^second,6,6,6,/);
  expect(store.waiting.value).toBe("");
  expect(store.selection.value).toMatchObject({ layer: 2, heads: [1] });
  expect(store.shown.value?.layer.layer).toBe(2);
});

test("the old record stays until all of the new one is here, and a later choice is loaded too", async () => {
  const store = await loaded(exampleSource(FIRST));
  const next = held(SECOND);
  const replaced = replaceRecord(store, next.source);
  await soon(() => expect(next.asked).toContain("weights/self/0"));
  expect(store.page.title).toBe("first");
  store.choose({ layer: 5 });
  next.letGo();
  await soon(() => expect(next.asked).toContain("weights/self/5"));
  expect(store.page.title).toBe("first");
  const letting = setInterval(next.letGo, 5);
  expect(await replaced).toBe(true);
  clearInterval(letting);
  expect([store.page.title, store.shown.value?.layer.layer]).toEqual(["second", 5]);
});

test("the newest of several replacements wins, whichever comes first", async () => {
  const store = await loaded(exampleSource(FIRST));
  const slow = held(SECOND);
  const early = replaceRecord(store, slow.source);
  const third = titled("third", ["[CLS]", "no", "[SEP]"]);
  expect(await replaceRecord(store, exampleSource(third))).toBe(true);
  slow.letGo();
  expect(await early).toBe(false);
  expect(store.page.title).toBe("third");
});

test("a record that cannot be loaded leaves the old one", async () => {
  const store = await loaded(exampleSource(FIRST));
  const broken: Source = { ...exampleSource(SECOND), chunk: () => Promise.reject(new Error("gone")) };
  await expect(replaceRecord(store, broken)).rejects.toThrow("gone");
  expect([store.page.title, store.failure.value]).toEqual(["first", null]);
});

test("pins follow their tokens, also those of steps to go back to", async () => {
  const store = await loaded(exampleSource(FIRST), { query: [2], key: [1] });
  store.choose({ query: [1, 2] });
  const move = (now: typeof store.selection.value) => movedPins(now, FIRST.page, SECOND.page);
  await replaceRecord(store, exampleSource(SECOND), move);
  expect([store.selection.value.query, store.selection.value.key]).toEqual([[3, 4], [1]]);
  store.undo(false);
  expect(store.selection.value.query).toEqual([4]);
});

test("tokens before an edit keep their place, those after it move, and edited ones are let go", () => {
  const places = (before: string, after: string) => {
    const follow = follower(before.split(" "), after.split(" "));
    return before.split(" ").map((_, token) => follow(token)[0] ?? null);
  };
  expect(places("a b c", "a x b c")).toEqual([0, 2, 3]);
  expect(places("a b c d", "a x d")).toEqual([0, null, null, 2]);
  expect(places("a a", "a a a")).toEqual([0, 1]);
  expect(places("a b", "c d e")).toEqual([null, null]);
  expect(follower(["a"], ["a"])(3)).toEqual([]);
});

test("figures are asked of the record that is shown", async () => {
  const figure = (name: string) => async () => new TextEncoder().encode(name);
  const store = await loaded({ ...exampleSource(FIRST), figure: figure("first") });
  await replaceRecord(store, { ...exampleSource(SECOND), figure: figure("second") });
  expect(new TextDecoder().decode(await store.figure?.("svg", {}))).toBe("second");
});

test("what heads do and what is known of them stays with the record", async () => {
  const store = await loaded(exampleSource(EXAMPLES.overview.make()), { view: "overview" });
  await soon(() => expect(store.kinds.value?.left).toBe(0));
  store.peeked.value = 13;
  await replaceRecord(store, exampleSource(EXAMPLES.overview.make()));
  expect([store.kinds.value?.left, store.full.value, store.shown.value?.layer.layer]).toEqual([0, 13, 2]);
  const labels = await loaded(exampleSource(EXAMPLES.labels.make()));
  await soon(() => expect(labels.evidence.value).not.toBeNull());
  const known = labels.evidence.value?.said;
  const { evidence: _, ...plain } = EXAMPLES.labels.make().page;
  await replaceRecord(labels, { ...exampleSource(EXAMPLES.labels.make()), header: plain });
  expect(labels.evidence.value?.said).toBe(known);
});
