import { expect, test, vi } from "vitest";
import { columnOf } from "../../src/draw/weights";
import { loadThumbs } from "../../src/source/heads";
import { LayerCache } from "../../src/source/layers";
import type { Source } from "../../src/source/source";
import { quantitiesOf } from "../../src/state/quantity";
import { createStore } from "../../src/state/store";
import { examplePage, exampleSource } from "../examples/page";
import { CONTRIBUTION, DIFFERENCE, NORMS, quantityPage, ROLLOUT } from "../quantities";
import { soon } from "../soon";

// A source that prepares its layers when they are asked for, head by head.

function inParts(form: "weights" | "scores", kvHeads = 3) {
  const example = examplePage({ form, kvHeads });
  const whole = exampleSource(example);
  const [stack] = example.page.stacks;
  const split = <Value extends { chunk: string } | null>(array: Value) => array && { ...array, split: 1 };
  const prepared = stack.layers.map((layer) => ({
    ...layer,
    weights: split(layer.weights),
    scores: layer.scores && {
      ...layer.scores,
      queries: { ...layer.scores.queries, split: 1 },
      keys: { ...layer.scores.keys, split: 1 },
    },
  }));
  const asked: string[] = [];
  const chunk = vi.fn(async (name: string) => {
    asked.push(name);
    const [kind, , number] = name.split("/");
    if (kind === "layer") {
      const layer = prepared.find(({ layer }) => layer === Number(number));
      return new TextEncoder().encode(JSON.stringify(layer)) as Uint8Array<ArrayBuffer>;
    }
    const at = Number(name.slice(name.lastIndexOf("/") + 1));
    const all = await whole.chunk(name.slice(0, name.lastIndexOf("/")));
    const entries = { weights: 3, queries: 3, keys: kvHeads, thumbs: stack.layers.length }[kind] ?? 0;
    const size = all.length / entries;
    return all.slice(at * size, (at + 1) * size);
  });
  const page = {
    ...example.page,
    stacks: [
      {
        ...stack,
        thumbs: { ...stack.thumbs, split: 1 },
        layers: stack.layers.map((layer) => ({ ...layer, later: true, weights: null, scores: null })),
      },
    ],
  };
  const source: Source = { header: page, chunk };
  return { source, whole, example, asked };
}

test.each(["weights", "scores"] as const)("heads come when they are asked for, as %s", async (form) => {
  const { source, whole, example, asked } = inParts(form);
  const [stack, stub] = [source.header.stacks[0], source.header.stacks[0].layers[1]];
  const cache = new LayerCache(source);
  const one = await cache.load(stack, stub, [2]);
  expect([...one.here]).toEqual([2]);
  expect(asked.filter((name) => /\/[01]$/.test(name))).toEqual([]);
  const two = await cache.load(stack, stub, [0, 2]);
  expect([...two.here]).toEqual([2, 0]);
  expect(await cache.load(stack, stub, [0])).toBe(two);
  expect(new Set(asked).size).toBe(asked.length);
  const all = await new LayerCache(whole).load(example.page.stacks[0], example.page.stacks[0].layers[1]);
  expect(two.page.layer).toBe(2);
  for (const head of [0, 2]) {
    expect(two.weights.bytes(head)).toEqual(all.weights.bytes(head));
    expect(two.weights.row(head, 3)).toEqual(all.weights.row(head, 3));
    expect(columnOf(two.weights, head, 6)).toEqual(columnOf(all.weights, head, 6));
  }
});

test("heads that share their keys ask for them once", async () => {
  const { source, asked } = inParts("scores", 1);
  const [stack] = source.header.stacks;
  await new LayerCache(source).load(stack, stack.layers[0], [0, 1, 2]);
  expect(asked.filter((name) => name.startsWith("keys"))).toEqual(["keys/self/0/0"]);
});

test("a head that could not be had may be asked for again", async () => {
  const { source } = inParts("weights");
  const [stack] = source.header.stacks;
  const cache = new LayerCache({
    ...source,
    chunk: vi
      .fn(source.chunk)
      .mockImplementationOnce(source.chunk)
      .mockImplementationOnce(() => Promise.reject(new Error("gone"))),
  });
  await expect(cache.load(stack, stack.layers[0], [1])).rejects.toThrow("gone");
  expect([...(await cache.load(stack, stack.layers[0], [1])).here]).toEqual([1]);
});

/** The same with what a quantity page holds beside weights, of which the stubs say only the names. */
function quantitiesInParts() {
  const whole = quantityPage();
  const [stack] = whole.page.stacks;
  const has = [["contribution", "rollout", "difference"], ["contribution", "rollout", "difference"], []];
  const later = stack.layers.map(({ value_norms: _norms, quantities: _quantities, ...layer }, at) => ({
    ...{ ...layer, weights: null, later: true, has: has[at] },
  }));
  const rows = new Map([
    ["row-difference/self/2/3", Float32Array.from({ length: 3 * 7 }, (_, at) => at - 9)],
    ["row-rollout/self/0/3", Float32Array.from({ length: 7 }, (_, at) => 10 * at)],
  ]);
  const inner = exampleSource(whole);
  const chunk = vi.fn(async (name: string) => {
    const [kind, , number] = name.split("/");
    const row = rows.get(name);
    if (row) return new Uint8Array(row.buffer);
    if (kind !== "layer") return inner.chunk(name);
    const page = stack.layers.find(({ layer }) => layer === Number(number));
    return new TextEncoder().encode(JSON.stringify(page)) as Uint8Array<ArrayBuffer>;
  });
  const source: Source = { header: { ...whole.page, stacks: [{ ...stack, layers: later }] }, chunk };
  return { source, whole, chunk };
}

test("a layer that comes later has the quantities that its stub names, as a whole page has them", async () => {
  const { source, whole, chunk } = quantitiesInParts();
  const [stack] = source.header.stacks;
  expect(quantitiesOf(source.header, stack).map(({ name }) => name)).toEqual([
    "weight",
    "contribution",
    "rollout",
    "difference",
  ]);
  const all = new LayerCache(exampleSource(whole));
  const cache = new LayerCache(source);
  for (const quantity of [CONTRIBUTION, ROLLOUT, DIFFERENCE]) {
    const { values, valueNorms } = await cache.load(stack, stack.layers[1], [], quantity);
    const wanted = await all.load(whole.page.stacks[0], whole.page.stacks[0].layers[1], [], quantity);
    expect(valueNorms).toEqual(NORMS);
    const [found, same] = [values.get(quantity.name), wanted.values.get(quantity.name)];
    expect(found?.row(found.heads - 1, 4)).toEqual(same?.row(same.heads - 1, 4));
    expect(found?.row(found.heads - 1, 4).some((value) => value !== 0)).toBe(true);
  }
  expect(chunk.mock.calls.flat().filter((name) => name === "rollout")).toHaveLength(1);
});

test("the store shows a later layer's quantity, and weights where its stub has none", async () => {
  const store = createStore(quantitiesInParts().source, { quantity: "difference" });
  await soon(() => expect(store.quantity.value).toEqual(DIFFERENCE));
  expect(store.values.value?.code?.signed).toBe(true);
  store.select((now) => ({ ...now, layer: 5 }));
  await soon(() => expect(store.shown.value?.layer.layer).toBe(5));
  expect(store.quantity.value.name).toBe("weight");
  store.destroy();
});

test("a row of a quantity is asked for by itself, of each head or of all together", async () => {
  const { source, chunk } = quantitiesInParts();
  const store = createStore(source);
  const { layers } = source.header.stacks[0];
  const row = await store.rowOf(layers[1], 3, DIFFERENCE);
  expect([row(0, 0), row(2, 6), row(3, 0)]).toEqual([-9, 11, undefined]);
  const together = await store.rowOf(layers[0], 3, ROLLOUT);
  expect([together(0, 6), together(1, 0)]).toEqual([60, undefined]);
  expect(chunk.mock.calls.flat()).not.toContain("difference");
  store.destroy();
});

test("thumbnails are shown as they come, the nearest first", async () => {
  const { source, whole, example, asked } = inParts("weights");
  const left: number[] = [];
  let last = new Uint8Array();
  await loadThumbs(source, source.header.stacks[0], 1, (loaded) => {
    left.push(loaded.left);
    last = Uint8Array.from(loaded.lifts.bytes(4));
    return true;
  });
  expect(left).toEqual([2, 1, 0]);
  expect(asked[0]).toBe("thumbs/self/1");
  await loadThumbs(whole, example.page.stacks[0], 0, ({ lifts, left }) => {
    expect(left).toBe(0);
    expect(last).toEqual(lifts.bytes(4));
    return true;
  });
});

test("thumbnails that take seconds come head by head, one at a time, after the head that is shown", async () => {
  const { source, whole, asked } = inParts("weights");
  const [stack] = source.header.stacks;
  const thumbs = { ...stack.thumbs, chunk: "thumb/self", split: 2 };
  const bytes = await whole.chunk("thumbs/self");
  const [layers, heads, queries, keys] = thumbs.shape;
  let waiting = 0;
  const chunk = async (name: string) => {
    if (!name.startsWith("thumb/")) return source.chunk(name);
    asked.push(name);
    expect(++waiting).toBe(1);
    await new Promise((done) => setTimeout(done));
    waiting--;
    const [layer, head] = name.split("/").slice(2).map(Number);
    const [first, size] = [layer * heads + head, queries * keys];
    return bytes.slice(first * size, (first + 1) * size);
  };
  const store = createStore({ header: { ...source.header, stacks: [{ ...stack, thumbs }] }, chunk }, { heads: [1] });
  expect(store.thumbsLeft.value).toBe(layers * heads);
  await soon(() => expect(store.thumbsLeft.value).toBe(0));
  expect(asked.filter((name) => name.startsWith("thumb/")).slice(0, 4)).toEqual(
    ["0/0", "0/1", "0/2", "1/0"].map((place) => `thumb/self/${place}`),
  );
  expect(asked.indexOf("weights/self/0/1")).toBeLessThan(asked.indexOf("thumb/self/0/0"));
  const last = layers * heads - 1;
  expect(store.thumbs.value?.bytes(last)).toEqual(bytes.slice(last * queries * keys));
  store.destroy();
});

test("the store shows the head that is here, then the one that was chosen", async () => {
  const { source, asked } = inParts("weights");
  const store = createStore(source, { heads: [1] });
  await soon(() => expect(store.shown.value).not.toBeNull());
  expect(store.head.value).toBe(1);
  expect(store.waiting.value).toBe("");
  store.select((now) => ({ ...now, heads: [2] }));
  expect(store.head.value).toBe(1);
  expect(store.waiting.value).toBe("layer 0");
  await soon(() => expect(store.head.value).toBe(2));
  expect(store.waiting.value).toBe("");
  expect(asked).not.toContain("weights/self/0/0");
  await soon(() => expect(store.thumbsLeft.value).toBe(0));
  store.destroy();
});

test("for a quantity that travels by itself no head of its layer is asked for", async () => {
  const { source, asked } = inParts("weights");
  const [stack] = source.header.stacks;
  const array = { ...source.header.stacks[0].thumbs, chunk: "given", shape: [3, 5, 7], axes: ["head", "query", "key"] };
  const text = new TextDecoder().decode(await source.chunk("layer/self/2"));
  const layer = { ...JSON.parse(text), quantities: { difference: { ...array, encoding: "signed", most: 1 } } };
  const sent = new Map([
    ["layer/self/2", new TextEncoder().encode(JSON.stringify(layer)) as Uint8Array<ArrayBuffer>],
    ["given", new Uint8Array(3 * 5 * 7).fill(255)],
  ]);
  const chunk = async (name: string) => sent.get(name) ?? source.chunk(name);
  asked.length = 0;
  const cache = new LayerCache({ ...source, chunk });
  const { values, here } = await cache.load(stack, stack.layers[1], null, DIFFERENCE);
  expect(values.get("difference")?.row(2, 4)[6]).toBeCloseTo(1);
  expect([[...here], asked]).toEqual([[], []]);
  // The weights of all heads are worked out from the heads themselves.
  expect((await cache.load(stack, stack.layers[1], null)).here.size).toBe(3);
});

test("the neighbours of a layer come by themselves; of a record that passes once the reader goes on", async () => {
  const layersOf = (asked: readonly string[]) => new Set(asked.filter((name) => name.startsWith("layer/"))).size;
  const [lasting, passing] = [inParts("weights"), inParts("weights")];
  const store = createStore(lasting.source, { layer: 0, view: "head" });
  const other = createStore({ ...passing.source, passing: true }, { layer: 0, view: "head" });
  await soon(() => expect(layersOf(lasting.asked)).toBe(2));
  await soon(() => expect(other.shown.value).not.toBeNull());
  expect(layersOf(passing.asked)).toBe(1);
  other.select((now) => ({ ...now, layer: 2 }));
  await soon(() => expect(layersOf(passing.asked)).toBe(3));
  store.destroy();
  other.destroy();
});
