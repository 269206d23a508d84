import type { PageLayer, PageQuantity, PageStack } from "../../types/page";
import { pooled, thumbShape } from "../draw/thumbs";
import type { Side } from "../draw/tokens";
import { largest } from "../draw/values";
import type { LoadedLayer } from "../source/layers";
import { hasQuantity, numberPair } from "./quantity";
import type { Store } from "./store";

/** What every head has between one query and one key; layers are filled as they come. */
export interface PairTile {
  readonly stack: PageStack;
  readonly quantity: PageQuantity;
  /** Axes layer, head, or one for the layer; empty where a page cannot tell. */
  readonly values: readonly (readonly number[])[];
  /** What even attention gives to the key, of each layer. */
  readonly evens: readonly number[];
  /** The largest size of a value. */
  readonly most: number;
  /** How a value is printed that even attention would make so large. */
  readonly text: (value: number, even: number) => string;
}

/** A function that loads a tile and shows it layer by layer; a newer call ends an older one. */
export function tileLoader(store: Store, show: (tile: PairTile) => void) {
  let newest = 0;
  return async (stack: PageStack, pair: Record<Side, number>, quantity: PageQuantity) => {
    const [number, from] = [++newest, store.origin.peek()];
    const values: number[][] = [];
    const evens: number[] = [];
    const heads = [...stack.head_numbers.keys()];
    const numbers = numberPair(quantity, stack.key.labels.length);
    const text = (value: number, even: number) => numbers(value, even)[0];
    for (const layer of stack.layers) {
      const row = hasQuantity(layer, quantity.name) ? await store.rowOf(layer, pair.query, quantity) : () => undefined;
      const even = await evenOf(store, layer, pair);
      // Another record that is shown meanwhile may not have this quantity.
      if (number !== newest || store.origin.peek() !== from) return;
      evens.push(even);
      const found = heads.map((head) => row(head, pair.key));
      values.push(found.map((value) => value ?? Number.NaN));
      if (values.length === stack.layers.length || values.length % 4 === 0)
        show({ stack, quantity, values: [...values], evens, most: largest(values.flat()) || 1e-6, text });
    }
  };
}

/** What even attention of a layer gives; of one that is not here, as of the layer that is shown. */
async function evenOf(store: Store, layer: PageLayer, { query, key }: Record<Side, number>): Promise<number> {
  const even = layer.later ? store.even.peek() : (await store.loadHead(layer, 0)).even;
  return even?.row(0, query)[key] ?? 0;
}

/** The cells with most: of scores the highest, of other quantities the largest in size. */
export function strongestCells({ stack, quantity, values, evens, text }: PairTile, most: number) {
  const order = quantity.name === "score" ? Number : Math.abs;
  return values
    .flatMap((row, layer) =>
      row.map((value, head) => ({ at: layer * stack.heads + head, value, text: text(value, evens[layer]) })),
    )
    .filter(({ value }) => Number.isFinite(value))
    .sort((a, b) => order(b.value) - order(a.value))
    .slice(0, most);
}

/** Small matrices of all heads of all layers; those of layers that are still to come are empty. */
export interface Pooled {
  readonly made: readonly Float32Array[];
  readonly shape: { readonly queries: number; readonly keys: number };
}

type Load = (layer: PageLayer, quantity: PageQuantity) => Promise<LoadedLayer>;

/**
 * A function that makes small matrices of a quantity of all layers, and shows them as they come; a newer call ends an
 * older one, and does nothing else without a quantity.
 */
export function pooledLoader(load: Load, show: (pooled: Pooled) => void) {
  let newest = 0;
  return async (stack: PageStack, quantity: PageQuantity | null) => {
    const number = ++newest;
    if (!quantity) return;
    const shape = thumbShape({ queries: stack.query.labels.length, keys: stack.key.labels.length });
    const heads = quantity.per === "layer" ? 1 : stack.heads;
    const empty = new Float32Array(shape.queries * shape.keys);
    const made: Float32Array[] = Array(stack.layers.length * heads).fill(empty);
    for (const [row, layer] of stack.layers.entries()) {
      const loaded = await load(layer, quantity);
      if (number !== newest) return;
      const values = loaded.values.get(quantity.name);
      for (let head = 0; values && head < values.heads; head++) made[row * heads + head] = pooled(values, head);
      show({ made, shape });
      // So that the page answers in between.
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
}
