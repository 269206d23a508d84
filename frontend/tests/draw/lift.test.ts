import { expect, test } from "vitest";
import { fitSelection, pageSelection } from "../../src/state/selection";
import { createStore } from "../../src/state/store";
import { createPicture } from "../../src/views/matrix/MatrixView";
import { heatOf } from "../../src/views/text/TextView";
import { examplePage, exampleSource, tokens } from "../examples/page";
import { soon } from "../soon";

// A head that gives the same to every key it may see: whatever the mask and the length, that is 1 × and no colour.

type Runs = (length: number) => [query: number, start: number, end: number][];

const each = (length: number) => Array.from({ length }, (_, query) => query);
const MASKS: Record<string, Runs> = {
  causal: (length) => each(length).map((query) => [query, 0, query + 1]),
  window: (length) => each(length).map((query) => [query, Math.max(0, query - 20), query + 1]),
  padded: (length) => each(length).map((query) => [query, 0, length - 7]),
  full: (length) => each(length).map((query) => [query, 0, length]),
};
const cases = Object.keys(MASKS).flatMap((mask) => [60, 250, 900, 1000].map((length) => ({ mask, length })));

async function evenStore(mask: string, length: number, selection: object) {
  const runs = MASKS[mask](length);
  const row = (_: number, __: number, query: number) => {
    const [, start, end] = runs[query];
    return each(length).map((key) => (key >= start && key < end ? 1 / (end - start) : 0));
  };
  const words = tokens(each(length).map((at) => `w${at}`));
  const { page, chunks } = examplePage({ layers: [0], heads: 1, query: words, key: words, runs, row });
  const wanted = fitSelection({ ...pageSelection(page), ...selection }, page);
  const store = createStore(exampleSource({ page, chunks }), wanted);
  await soon(() => expect(store.values.value).not.toBeNull());
  return store;
}

test.each(cases)("an even head, $mask, $length tokens: no heat anywhere", async ({ mask, length }) => {
  const store = await evenStore(mask, length, {});
  for (const direction of ["received", "given"] as const) {
    expect(new Set(heatOf(store, direction)?.bytes)).toEqual(new Set([0]));
  }
  expect(new Set(createPicture(store)?.tile.bytes)).toEqual(new Set([0]));
  store.choose({ query: [50] });
  const heat = heatOf(store, "received");
  expect(new Set(heat?.bytes)).toEqual(new Set([0]));
  if (length >= 200) expect([heat?.text(50), heat?.text(40)]).toEqual(["1.0 ×", "1.0 ×"]);
  store.choose({ query: [], key: [30] });
  expect(new Set(heatOf(store, "received")?.bytes)).toEqual(new Set([0]));
});

test("joined words keep their even share", async () => {
  const store = await evenStore("causal", 250, { words: true });
  expect(new Set(heatOf(store, "received")?.bytes)).toEqual(new Set([0]));
});

test("what is twice the even share of its query is 2 ×", async () => {
  const words = tokens(each(400).map((at) => `w${at}`));
  const row = (_: number, __: number, query: number) =>
    each(400).map((key) =>
      key > query ? 0 : query < 3 ? 1 / (query + 1) : key === 1 ? 2 / (query + 1) : (1 - 2 / (query + 1)) / query,
    );
  const runs = MASKS.causal(400);
  const { page, chunks } = examplePage({ layers: [0], heads: 1, query: words, key: words, runs, row });
  const store = createStore(exampleSource({ page, chunks }), { query: [99] });
  await soon(() => expect(store.attention.value).not.toBeNull());
  const [text] = store.numbers.value(store.attention.value?.[1] ?? 0, store.evenAttention.value[1]);
  expect(text).toMatch(/^(1\.9|2\.0) ×$/);
});
