import type { PageQuantity, PageStack } from "../../contract/page";
import type { Side } from "../../draw/place";
import { largest } from "../../draw/values";
import { hasQuantity } from "../../state/quantity";
import type { Store } from "../../state/store";

/** What every head has between one query and one key; layers are filled as they come. */
export interface PairTile {
  readonly stack: PageStack;
  readonly quantity: PageQuantity;
  /** Axes layer, head, or one for the layer; empty where a page cannot tell. */
  readonly values: readonly (readonly number[])[];
  /** The largest size of a value. */
  readonly most: number;
  readonly complete: boolean;
}

/** A function that loads a tile and shows it layer by layer; a newer call ends an older one. */
export function tileLoader(store: Store, show: (tile: PairTile) => void) {
  let newest = 0;
  return async (stack: PageStack, pair: Record<Side, number>, quantity: PageQuantity) => {
    const number = ++newest;
    const values: number[][] = [];
    const heads = [...stack.head_numbers.keys()];
    for (const layer of stack.layers) {
      const row = hasQuantity(layer, quantity.name) ? await store.rowOf(layer, pair.query, quantity) : () => undefined;
      if (number !== newest) return;
      const found = heads.map((head) => row(head, pair.key));
      values.push(found.map((value) => value ?? Number.NaN));
      const complete = values.length === stack.layers.length;
      if (complete || values.length % 4 === 0)
        show({ stack, quantity, values: [...values], most: mostOf(values), complete });
    }
  };
}

function mostOf(values: readonly (readonly number[])[]): number {
  return largest(values.flat()) || 1e-6;
}

/** The cells with most: of scores the highest, of other quantities the largest in size. */
export function strongestCells({ stack, quantity, values }: PairTile, most: number) {
  const order = quantity.name === "score" ? Number : Math.abs;
  return values
    .flatMap((row, layer) =>
      row.map((value, head) => {
        const of = stack.layers[layer].layer;
        return { name: quantity.per === "layer" ? `${of}` : `${of}-${stack.head_numbers[head]}`, value };
      }),
    )
    .filter(({ value }) => Number.isFinite(value))
    .sort((a, b) => order(b.value) - order(a.value))
    .slice(0, most);
}
