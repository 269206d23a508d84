import type { PageStack } from "../../contract/page";
import type { Side } from "../../draw/place";
import type { Quantity } from "../../state/selection";
import type { Store } from "../../state/store";

/** What every head has between one query and one key; layers are filled as they come. */
export interface PairTile {
  readonly stack: PageStack;
  /** Axes layer, head; empty where a page cannot tell. */
  readonly values: readonly (readonly number[])[];
  /** The largest size of a value. */
  readonly most: number;
  readonly complete: boolean;
}

/** A function that loads a tile and shows it layer by layer; a newer call ends an older one. */
export function tileLoader(store: Store, show: (tile: PairTile) => void) {
  let newest = 0;
  return async (stack: PageStack, pair: Record<Side, number>, quantity: Quantity) => {
    const number = ++newest;
    const values: number[][] = [];
    const heads = [...stack.head_numbers.keys()];
    for (const layer of stack.layers) {
      const row = await store.rowOf(layer, pair.query, quantity);
      if (number !== newest) return;
      const found = heads.map((head) => row(head, pair.key));
      values.push(found.filter((value) => value !== undefined));
      const complete = values.length === stack.layers.length;
      if (complete || values.length % 4 === 0) show({ stack, values: [...values], most: mostOf(values), complete });
    }
  };
}

function mostOf(values: readonly (readonly number[])[]): number {
  return values.flat().reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 1e-6);
}

export function strongestCells({ stack, values }: PairTile, most: number): { name: string; value: number }[] {
  return values
    .flatMap((row, layer) =>
      row.map((value, head) => ({ name: `${stack.layers[layer].layer}-${stack.head_numbers[head]}`, value })),
    )
    .filter(({ value }) => Number.isFinite(value))
    .sort((a, b) => b.value - a.value)
    .slice(0, most);
}
