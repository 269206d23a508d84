import { expect, test, vi } from "vitest";
import { columnOf, WEIGHT } from "../../src/draw/weights";
import { LayerCache } from "../../src/source/layers";
import { type Example, examplePage, exampleSource } from "../examples/page";
import { BYTES, DIFFERENCE, NORMS, quantityPage, ROLLOUT } from "../quantities";

const example = examplePage({ layers: [0, 1, 2, 3, 7] });
const [stack] = example.page.stacks;

function countingSource(from: Example = example) {
  const source = exampleSource(from);
  return { ...source, chunk: vi.fn(source.chunk) };
}

test("a layer comes with its shape, and head bytes are its slices", async () => {
  const { weights } = await new LayerCache(countingSource()).load(stack, stack.layers[1]);
  expect(weights).toMatchObject({ heads: 3, queries: 5, keys: 7 });
  const bytes = example.chunks.get("weights/self/1") ?? new Uint8Array();
  expect(weights.bytes(2)).toEqual(bytes.subarray(70, 105));
  expect(weights.row(2, 4)[6]).toBe(WEIGHT[bytes[2 * 35 + 4 * 7 + 6]]);
  expect(columnOf(weights, 2, 6)[4]).toBe(weights.row(2, 4)[6]);
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
  const message = new RegExp(`${length} bytes.*head × query × key = 3 × 5 × 7 of uint8 need 105`);
  await expect(cache.load(stack, stack.layers[0])).rejects.toThrow(message);
  await expect(cache.load(stack, stack.layers[0])).rejects.toThrow(message);
  expect(source.chunk).toHaveBeenCalledTimes(2);
});

test("a layer of queries and keys gives weights whose rows are softmaxes", async () => {
  const { page, chunks } = examplePage({ form: "scores", heads: 4, kvHeads: 2, runs: RUNS });
  const [scored] = page.stacks;
  const { weights, scores, visible } = await new LayerCache(exampleSource({ page, chunks })).load(
    scored,
    scored.layers[0],
  );
  expect(scores).toMatchObject({ heads: 4, kvHeads: 2, queries: 5, keys: 7, features: 6 });
  expect(visible?.offsets.at(-1)).toBe(RUNS.length);
  expect(weights.row(3, 2).reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 6);
  expect([...weights.row(3, 2)].filter((weight) => weight > 0)).toHaveLength(4);
});

const RUNS = [
  [0, 0, 7],
  [1, 0, 1],
  [2, 1, 3],
  [2, 5, 7],
  [4, 2, 6],
] as const;

test("a quantity is fetched when it is asked for, once, and decoded as it is stored", async () => {
  const from = quantityPage();
  const [{ layers }] = from.page.stacks;
  const source = countingSource(from);
  const cache = new LayerCache(source);
  const plain = await cache.load(from.page.stacks[0], layers[0]);
  expect([...plain.values.keys()]).toEqual(["weight", "contribution"]);
  expect(plain.valueNorms).toEqual(NORMS);
  expect(source.chunk.mock.calls.flat()).not.toContain("rollout");
  for (let again = 0; again < 2; again++) await cache.load(from.page.stacks[0], layers[0], [], ROLLOUT);
  expect(source.chunk.mock.calls.flat().filter((name) => name === "rollout")).toHaveLength(1);
  const rollout = plain.values.get("rollout");
  expect(rollout).toMatchObject({ heads: 1, queries: 5, keys: 7 });
  expect(rollout?.row(0, 4)[6]).toBeCloseTo(0.5 * (BYTES.rollout[34] / 255) ** 2, 6);
  const { values } = await cache.load(from.page.stacks[0], layers[1], [], DIFFERENCE);
  const lowest = BYTES.difference.indexOf(Math.min(...BYTES.difference.subarray(70)), 70) - 70;
  const root = (BYTES.difference[70 + lowest] - 128) / 127;
  expect(root).toBeLessThan(-0.1);
  const row = values.get("difference")?.row(2, Math.floor(lowest / 7));
  expect(row?.[lowest % 7]).toBeCloseTo(-4 * root * root, 6);
});
