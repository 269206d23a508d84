import type { PageQuantity, PageStack } from "../../contract/page";
import { pooled, thumbShape, thumbsOf } from "../../draw/thumbs";
import type { LayerValues } from "../../draw/values";
import type { LoadedLayer } from "../../source/layers";
import type { Store } from "../../state/store";

/** How often thumbnails are shown while layers come. */
const STAGES = 4;

/**
 * A function that makes the thumbnails of a quantity of all layers, and shows them as they come, all on one scale;
 * a newer call ends an older one.
 */
export function thumbLoader(store: Store, show: (thumbs: LayerValues) => void) {
  let newest = 0;
  return async (stack: PageStack, quantity: PageQuantity) => {
    const number = ++newest;
    const shape = thumbShape({ queries: stack.query.labels.length, keys: stack.key.labels.length });
    const heads = quantity.per === "layer" ? 1 : stack.heads;
    const empty = new Float32Array(shape.queries * shape.keys);
    const made: Float32Array[] = Array(stack.layers.length * heads).fill(empty);
    const often = Math.ceil(stack.layers.length / STAGES);
    for (const [row, layer] of stack.layers.entries()) {
      const loaded = await store.load(layer, quantity);
      if (number !== newest) return;
      thumbsIn(loaded, quantity.name).forEach((thumb, head) => {
        made[row * heads + head] = thumb;
      });
      const complete = row === stack.layers.length - 1;
      if (complete || (row + 1) % often === 0) show(thumbsOf(made, shape, quantity.signed));
      // So that the page answers in between.
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
}

/** The thumbnails of a layer; none where it has not this quantity. */
function thumbsIn({ values }: LoadedLayer, name: string): Float32Array[] {
  const of = values.get(name);
  return of ? Array.from({ length: of.heads }, (_, head) => pooled(of, head)) : [];
}
