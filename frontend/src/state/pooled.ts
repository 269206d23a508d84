import type { PageLayer, PageQuantity, PageStack } from "../contract/page";
import { pooled, pooledLifts, thumbShape } from "../draw/thumbs";
import type { LoadedLayer } from "../source/layer";

/** Small matrices of all heads of all layers; those of layers that are still to come are empty. */
export interface Pooled {
  readonly made: readonly Float32Array[];
  readonly shape: { readonly queries: number; readonly keys: number };
  /** Layers that are still to come. */
  readonly left: number;
}

type Load = (layer: PageLayer, quantity: PageQuantity) => Promise<LoadedLayer>;

/** How often small matrices are shown while layers come. */
const STAGES = 4;

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
    const often = Math.ceil(stack.layers.length / STAGES);
    for (const [row, layer] of stack.layers.entries()) {
      const loaded = await load(layer, quantity);
      if (number !== newest) return;
      pooledIn(loaded, quantity.name).forEach((thumb, head) => {
        made[row * heads + head] = thumb;
      });
      const left = stack.layers.length - row - 1;
      if (left === 0 || (row + 1) % often === 0) show({ made, shape, left });
      // So that the page answers in between.
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
}

/** The small matrices of a layer; none where it has not this quantity. */
function pooledIn({ values, even }: LoadedLayer, name: string): Float32Array[] {
  const of = values.get(name);
  const small = (head: number) => of && (name === "weight" ? pooledLifts(of, head, even) : pooled(of, head));
  return Array.from({ length: of?.heads ?? 0 }, (_, head) => small(head) ?? new Float32Array());
}
