import { expect, test, vi } from "vitest";
import { headBytes, WEIGHT } from "../../src/draw/weights";
import { type Example, examplePage, exampleSource } from "../../src/examples/page";
import { LayerCache } from "../../src/source/layers";

const example = examplePage({ layers: [0, 1, 2, 3, 7] });
const [stack] = example.page.stacks;

function countingSource(from: Example = example) {
  const source = exampleSource(from);
  return { ...source, chunk: vi.fn(source.chunk) };
}

test("a layer comes with its shape, and head bytes are its slices", async () => {
  const weights = await new LayerCache(countingSource()).load(stack, stack.layers[1]);
  expect(weights).toMatchObject({ heads: 3, queries: 5, keys: 7 });
  expect(weights.bytes).toEqual(example.chunks.get("weights/self/1"));
  expect(headBytes(weights, 2)[4 * 7 + 6]).toBe(weights.bytes[2 * 35 + 4 * 7 + 6]);
  expect(headBytes(weights, 2)).toHaveLength(35);
});

test("bytes become weights by their square", () => {
  expect(WEIGHT[0]).toBe(0);
  expect(WEIGHT[51]).toBeCloseTo(0.04, 7);
  expect(WEIGHT[255]).toBe(1);
});

test("a layer is fetched once while it is kept, also when asked for twice at once", async () => {
  const source = countingSource();
  const cache = new LayerCache(source);
  const [first, second] = await Promise.all([cache.load(stack, stack.layers[0]), cache.load(stack, stack.layers[0])]);
  expect(first).toBe(second);
  expect(source.chunk).toHaveBeenCalledTimes(1);
});

test("the layer that was not used for longest goes first, and three always stay", async () => {
  const source = countingSource();
  const cache = new LayerCache(source, 1);
  for (const at of [0, 1, 2]) await cache.load(stack, stack.layers[at]);
  await cache.load(stack, stack.layers[0]);
  await cache.load(stack, stack.layers[3]);
  expect(cache.size).toBe(3);
  source.chunk.mockClear();
  for (const at of [0, 2, 3]) await cache.load(stack, stack.layers[at]);
  expect(source.chunk).not.toHaveBeenCalled();
  await cache.load(stack, stack.layers[1]);
  expect(source.chunk).toHaveBeenCalledTimes(1);
});

test.each([104, 106])("a chunk of %i bytes says what was given and wanted, and is asked for again", async (length) => {
  const broken = { page: example.page, chunks: new Map([["weights/self/0", new Uint8Array(length)]]) };
  const source = countingSource(broken);
  const cache = new LayerCache(source);
  const message = new RegExp(`${length} weights.*3 heads × 5 queries × 7 keys need 105`);
  await expect(cache.load(stack, stack.layers[0])).rejects.toThrow(message);
  await expect(cache.load(stack, stack.layers[0])).rejects.toThrow(message);
  expect(source.chunk).toHaveBeenCalledTimes(2);
});
