import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { thumbsOf } from "../../draw/thumbs";
import type { LayerValues } from "../../draw/values";
import { type GridThumbs, type ThumbStyle, weightThumbs } from "../../parts/HeadGrid";
import { pooledLoader } from "../../state/pooled";
import type { Store } from "../../state/store";

/** The thumbnails of the chosen quantity; null until they are made. */
export function useQuantityThumbs(store: Store, style: { readonly value: ThumbStyle }) {
  const made = useSignal<{ values: LayerValues; name: string; complete: boolean } | null>(null);
  const load = useRef(
    pooledLoader(store.load, ({ made: matrices, shape, left }) => {
      const { name, signed } = store.quantity.peek();
      made.value = { values: thumbsOf(matrices, shape, signed), name, complete: left === 0 };
    }),
  );
  useSignalEffect(() => {
    const [quantity, stack] = [store.quantity.value, store.stack.value];
    load.current(stack, quantity.name === "weight" ? null : quantity).catch(store.fail);
  });
  return useComputed((): GridThumbs | null => {
    const quantity = store.quantity.value;
    if (quantity.name === "weight") return weightThumbs(store, style.value);
    const now = made.value;
    if (now?.name !== quantity.name) return null;
    return { values: now.values, quantity, style: style.value, complete: now.complete };
  });
}
