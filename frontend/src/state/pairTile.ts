import type { PageLayer, PageQuantity, PageStack } from "../contract/page";
import type { Side } from "../draw/columns";
import { largest } from "../draw/values";
import { hasQuantity, toldText } from "./quantity";
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
  readonly complete: boolean;
}

/** A function that loads a tile and shows it layer by layer; a newer call ends an older one. */
export function tileLoader(store: Store, show: (tile: PairTile) => void) {
  let newest = 0;
  return async (stack: PageStack, pair: Record<Side, number>, quantity: PageQuantity) => {
    const number = ++newest;
    const values: number[][] = [];
    const evens: number[] = [];
    const heads = [...stack.head_numbers.keys()];
    const text = toldText(quantity, stack.key.labels.length);
    for (const layer of stack.layers) {
      const row = hasQuantity(layer, quantity.name) ? await store.rowOf(layer, pair.query, quantity) : () => undefined;
      const even = await evenOf(store, layer, pair);
      if (number !== newest) return;
      evens.push(even);
      const found = heads.map((head) => row(head, pair.key));
      values.push(found.map((value) => value ?? Number.NaN));
      const complete = values.length === stack.layers.length;
      if (complete || values.length % 4 === 0)
        show({ stack, quantity, values: [...values], evens, most: mostOf(values), text, complete });
    }
  };
}

/** What even attention of a layer gives; of one that is not here, as of the layer that is shown. */
async function evenOf(store: Store, layer: PageLayer, { query, key }: Record<Side, number>): Promise<number> {
  const even = layer.later ? store.even.peek() : (await store.loadHead(layer, 0)).even;
  return even?.row(0, query)[key] ?? 0;
}

function mostOf(values: readonly (readonly number[])[]): number {
  return largest(values.flat()) || 1e-6;
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
