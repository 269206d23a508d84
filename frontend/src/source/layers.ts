import type { PageArray, PageLayer, PageQuantity, PageScores, PageStack } from "../../types/page";
import { kvHead, type ScoreParts, scoreWeights, type Visible, visibleRuns } from "../draw/scores";
import { arrayValues, contributionValues, evenWeights, type LayerValues, scoreValues } from "../draw/values";
import { headWeights, type LayerWeights } from "../draw/weights";
import { checkLayer, PageError, type Source } from "./source";

const BYTES: Readonly<Record<PageArray["dtype"], number>> = { uint8: 1, float16: 2, float32: 4, int32: 4 };

export function arraySize({ shape }: PageArray): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** One part of an array that comes in parts, as an array of its own. */
export function partOf(array: PageArray, at: number): PageArray {
  const { split = 0, ...rest } = array;
  const [, heads] = array.shape;
  const place = split > 1 ? `${Math.floor(at / heads)}/${at % heads}` : at;
  const shape = array.shape.map((size, axis) => (axis < split ? 1 : size));
  return split ? { ...rest, chunk: `${array.chunk}/${place}`, shape } : array;
}

/** How many layers are asked for at a time. */
const AT_ONCE = 3;

/**
 * Reads an array of layers as it comes, from one of them on: `show` is told what came, where it begins, and how many
 * layers, or heads where these come one by one, are still to come; it ends where that gives false.
 */
export async function readLayers(
  source: Source,
  array: PageArray,
  first: number,
  show: (part: PageArray, bytes: Uint8Array<ArrayBuffer>, start: number, left: number) => boolean,
): Promise<void> {
  const { split = 0, shape } = array;
  if (split === 0) {
    show(array, await source.chunk(array.chunk), 0, 0);
    return;
  }
  const heads = split > 1 ? shape[1] : 1;
  let [left, wanted] = [shape[0] * heads, true];
  const from = (at: number) => Math.abs(Math.floor(at / heads) - first);
  const order = [...Array(left).keys()].sort((a, b) => from(a) - from(b));
  const worker = async () => {
    for (let row = order.shift(); row !== undefined && wanted; row = order.shift()) {
      const part = partOf(array, row);
      const bytes = await source.chunk(part.chunk);
      if (wanted) wanted = show(part, bytes, row * arraySize(part), --left);
    }
  };
  // What takes seconds is asked for singly, so that it stands in the way of nothing else.
  await Promise.all(Array.from({ length: split > 1 ? 1 : AT_ONCE }, worker));
}

/** The bytes of an array, where there are as many as its shape and type need. */
export function checkedBytes(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const wanted = arraySize(array) * BYTES[array.dtype];
  if (bytes.length !== wanted) {
    throw new PageError(
      `“${array.chunk}” holds ${bytes.length} bytes; ${array.axes.join(" × ")} = ${array.shape.join(" × ")} of ` +
        `${array.dtype} need ${wanted}. The file is damaged. Write it again.`,
    );
  }
  return bytes;
}

/** Numbers of 16 or 32 bits as single precision. */
export function floats(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Float32Array {
  const { buffer, byteOffset } = checkedBytes(array, bytes);
  if (array.dtype === "float32") return new Float32Array(buffer, byteOffset, arraySize(array));
  if (array.dtype !== "float16")
    throw new PageError(`“${array.chunk}” is ${array.dtype}; wanted is float16 or float32.`);
  const halves = new Uint16Array(buffer, byteOffset, arraySize(array));
  const table = valueOfHalves();
  const numbers = new Float32Array(halves.length);
  for (let at = 0; at < halves.length; at++) numbers[at] = table[halves[at]];
  return numbers;
}

/** The numbers of an array, whichever way they are stored. */
export function decoded(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Float32Array {
  const { dtype, encoding, most = 1 } = array;
  if (dtype !== "uint8") return floats(array, bytes).map((value) => value * most);
  const zero = encoding === "signed" ? 128 : 0;
  const values = Float32Array.from({ length: 256 }, (_, byte) => {
    const root = (byte - zero) / (255 - zero);
    return most * root * Math.abs(root);
  });
  return Float32Array.from(checkedBytes(array, bytes), (byte) => values[byte]);
}

function integers(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Int32Array {
  const { buffer, byteOffset } = checkedBytes(array, bytes);
  return new Int32Array(buffer, byteOffset, arraySize(array));
}

let halves: Float32Array | undefined;

/** The value of every number in half precision. */
function valueOfHalves(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(2 ** 16);
  for (let exponent = 0; exponent < 32; exponent++) {
    const step = 2 ** (Math.max(1, exponent) - 25);
    for (let fraction = 0; fraction < 1024; fraction++) {
      const finite = (exponent === 0 ? fraction : 1024 + fraction) * step;
      const value = exponent < 31 ? finite : fraction ? Number.NaN : Number.POSITIVE_INFINITY;
      const half = 1024 * exponent + fraction;
      halves[half] = value;
      halves[half + 2 ** 15] = -value;
    }
  }
  return halves;
}

/** What is here of one layer, unpacked. */
export interface LoadedLayer {
  /** The layer's part of the header, as it was prepared. */
  readonly page: PageLayer;
  readonly weights: LayerWeights;
  /** Null where the page has no queries and keys of this layer. */
  readonly scores: ScoreParts | null;
  readonly visible: Visible | null;
  /** What even attention gives among the keys that each query sees. */
  readonly even: LayerValues;
  /** Axes head, key: the length of what a key adds when it has all of a head's weight. */
  readonly valueNorms: Float32Array | null;
  /** What can be shown in place of the weights, by name; what travels as an array is there once it was asked for. */
  readonly values: ReadonlyMap<string, LayerValues>;
  /** Positions of the heads that are here. */
  readonly here: ReadonlySet<number>;
}

/**
 * Heads by their position; none stands for all of them. Null is for a quantity alone: those that it is worked out from.
 */
export type WantedHeads = readonly number[] | null;

/** A layer that was opened: gives it with the heads that are wanted, or all where none of them is in it. */
export type OpenLayer = (heads: WantedHeads, quantity?: PageQuantity) => Promise<LoadedLayer>;

export async function openLayer(source: Source, stack: PageStack, stub: PageLayer): Promise<OpenLayer> {
  const page = stub.later ? await askedLayer(source, stack, stub) : stub;
  const queries = stack.query.labels.length;
  const keys = stack.key.labels.length;
  const visible = page.visible && visibleRuns(integers(page.visible, await source.chunk(page.visible.chunk)), queries);
  const scores = page.scores && openScores(source, page.scores, { queries, keys, visible });
  const bytes = page.weights && byteParts(source, page.weights);
  const weights =
    page.weights && bytes
      ? headWeights((head) => bytes.numbers[head], { heads: page.weights.shape[0], queries, keys })
      : scores && scoreWeights(scores.parts);
  if (!weights) throw new Error(`layer ${page.layer} has neither weights nor scores`);
  const split = page.weights?.split || page.scores?.queries.split;
  const norms = page.value_norms && floats(page.value_norms, await source.chunk(page.value_norms.chunk));
  const values = new Map<string, LayerValues>([["weight", weights]]);
  if (scores) values.set("score", scoreValues(scores.parts));
  // What was given goes before what follows from the value norms.
  if (norms && !page.quantities?.contribution) values.set("contribution", contributionValues(weights, norms));
  const even = evenWeights(visible, { queries, keys }, Boolean(page.weights));
  const parts = { page, weights, even, scores: scores?.parts ?? null, visible, valueNorms: norms ?? null, values };
  let loaded: LoadedLayer = { ...parts, here: new Set() };
  return async (wanted, quantity) => {
    const array = quantity && page.quantities?.[quantity.name];
    const all = page.held ?? [...Array(weights.heads).keys()];
    const inside = all.filter((head) => wanted?.includes(head));
    const heads = (split && inside.length > 0) || (array && !wanted) ? inside : all;
    const needed = heads.flatMap((head) => [scores?.need(head), bytes?.need(head)]);
    const [found] = await Promise.all([
      array && !values.has(quantity.name) ? loadValues(source, array, quantity) : null,
      ...needed,
    ]);
    if (quantity && found) values.set(quantity.name, found);
    if (heads.some((head) => !loaded.here.has(head))) {
      loaded = { ...loaded, here: new Set([...loaded.here, ...heads]) };
    }
    return loaded;
  };
}

async function loadValues(source: Source, array: PageArray, { signed }: PageQuantity): Promise<LayerValues> {
  const numbers = decoded(array, await source.chunk(array.chunk));
  const [heads, queries, keys] = array.shape.length === 2 ? [1, ...array.shape] : array.shape;
  return arrayValues(numbers, { heads, queries, keys }, signed);
}

/** What one query has with every key in every head, or in all together, asked for by itself: axes head, key. */
export async function askedRow(
  source: Source,
  stack: PageStack,
  { layer }: PageLayer,
  { name }: PageQuantity,
  query: number,
): Promise<(head: number, key: number) => number | undefined> {
  const bytes = await source.chunk(`row-${name}/${stack.name}/${layer}/${query}`);
  const row = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const keys = stack.key.labels.length;
  return (head, key) => row[head * keys + key];
}

async function askedLayer(source: Source, stack: PageStack, { layer }: PageLayer): Promise<PageLayer> {
  const text = new TextDecoder().decode(await source.chunk(`layer/${stack.name}/${layer}`));
  let page: PageLayer;
  try {
    page = JSON.parse(text) as PageLayer;
  } catch (cause) {
    throw new PageError(`What was sent of layer ${layer} is not JSON. Open the page again.`, { cause });
  }
  checkLayer(stack, page);
  return page;
}

type Sizes = Pick<ScoreParts, "queries" | "keys" | "visible">;

function openScores(source: Source, page: PageScores, sizes: Sizes) {
  const [query, key] = [floatParts(source, page.queries), floatParts(source, page.keys)];
  const bias = page.bias && { ...floatParts(source, page.bias), shape: page.bias.shape };
  const [heads, , features] = page.queries.shape;
  const parts: ScoreParts = {
    ...sizes,
    heads,
    features,
    query: query.numbers,
    key: key.numbers,
    kvHeads: page.keys.shape[0],
    scale: page.scale,
    softCap: page.soft_cap,
    bias: bias && { values: bias.numbers, heads: bias.shape[0], byOffset: bias.shape.length === 2 },
    sinks: page.sinks,
  };
  const need = (head: number) =>
    Promise.all([query.need(head), key.need(kvHead(parts, head)), bias?.need(parts.bias?.heads === 1 ? 0 : head)]);
  return { parts, need };
}

/** Numbers of 16 or 32 bits of which each entry of the outermost axis is there when it was asked for, else zero. */
function floatParts(source: Source, array: PageArray) {
  const numbers = new Float32Array(arraySize(array));
  const need = partsOf(source, array, (part, bytes, start) => numbers.set(floats(part, bytes), start));
  return { numbers, need };
}

/** Bytes, each entry an array of its own: many are never asked for. */
function byteParts(source: Source, array: PageArray) {
  const numbers: Uint8Array[] = [];
  const size = arraySize(array) / array.shape[0];
  const need = partsOf(source, array, (part, bytes, start) => {
    const all = checkedBytes(part, bytes);
    for (let at = 0; at < all.length; at += size) numbers[(start + at) / size] = all.subarray(at, at + size);
  });
  return { numbers, need };
}

/** Takes in an entry when it is asked for; all at once where an array comes whole. */
function partsOf(
  source: Source,
  array: PageArray,
  take: (part: PageArray, bytes: Uint8Array<ArrayBuffer>, start: number) => void,
): (at: number) => Promise<void> {
  const fetched = fetching(async (at) => {
    const part = partOf(array, at);
    take(part, await source.chunk(part.chunk), at * arraySize(part));
  });
  return (at) => fetched(array.split ? at : 0);
}

/** Fetches each entry once; one that failed may be asked for again. */
function fetching(fetch: (at: number) => Promise<void>): (at: number) => Promise<void> {
  const asked = new Map<number, Promise<void>>();
  return (at) => {
    const fetched =
      asked.get(at) ??
      fetch(at).catch((error) => {
        asked.delete(at);
        throw error;
      });
    asked.set(at, fetched);
    return fetched;
  };
}

const MOST_BYTES = 96 * 2 ** 20;
/** The shown layer and its two neighbours stay, however large. */
const FEWEST_LAYERS = 3;

/** Layers, unpacked when asked for and kept while there is room (least recently used goes first). */
export class LayerCache {
  readonly #source: Source;
  readonly #mostBytes: number;
  readonly #kept = new Map<PageLayer, Promise<OpenLayer>>();

  constructor(source: Source, mostBytes = MOST_BYTES) {
    this.#source = source;
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /**
   * A layer with at least these heads, by their position; with all of them where they come at once, and where none is
   * named; with null those that the quantity needs. A quantity that travels as an array comes only where it is asked for.
   */
  async load(
    stack: PageStack,
    layer: PageLayer,
    heads: WantedHeads = [],
    quantity?: PageQuantity,
  ): Promise<LoadedLayer> {
    const opened = this.#kept.get(layer) ?? openLayer(this.#source, stack, layer);
    this.#kept.delete(layer);
    this.#kept.set(layer, opened);
    this.#makeRoom(stack);
    try {
      return await (await opened)(heads, quantity);
    } catch (error) {
      this.#kept.delete(layer);
      throw error;
    }
  }

  #makeRoom(stack: PageStack): void {
    let total = 0;
    for (const layer of this.#kept.keys()) total += bytesOf(stack, layer);
    for (const layer of this.#kept.keys()) {
      if (total <= this.#mostBytes || this.#kept.size <= FEWEST_LAYERS) return;
      total -= bytesOf(stack, layer);
      this.#kept.delete(layer);
    }
  }
}

/** Quantities that need no array of their own. */
const WORKED_OUT = ["score", "contribution"];

/** What a layer takes when its heads have been drawn. */
function bytesOf({ heads, query, key }: PageStack, { scores, quantities = {}, has = [] }: PageLayer): number {
  const pictures = heads * query.labels.length * key.labels.length;
  const arrays = Object.values(quantities).reduce((sum, array) => sum + arraySize(array), 0);
  const further = 5 * (arrays + pictures * has.filter((name) => !WORKED_OUT.includes(name)).length);
  return pictures + further + (scores ? 4 * (arraySize(scores.queries) + arraySize(scores.keys)) : 0);
}
