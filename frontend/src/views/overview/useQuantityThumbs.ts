import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageQuantity } from "../../contract/page";
import { thumbsOf } from "../../draw/thumbs";
import type { LayerValues } from "../../draw/values";
import { pooledLoader } from "../../state/pooled";
import { WEIGHT_FACTS } from "../../state/quantity";
import type { Selection } from "../../state/selection";
import type { Store } from "../../state/store";
import type { PatchRows } from "../../state/store/patches";

type ThumbStyle = Selection["tiles"];

/** Side in CSS pixels from which on lines can be followed in a thumbnail. */
export const LEAST_LINES = 80;

/** How thumbnails of this side are drawn where a style is wanted. */
export function styleAt(side: number, wanted: ThumbStyle): ThumbStyle {
  return side < LEAST_LINES ? "matrices" : wanted;
}

/** Thumbnails, and how they are drawn. */
export interface GridThumbs {
  readonly values: LayerValues;
  readonly quantity: PageQuantity;
  readonly style: ThumbStyle;
  /** Of a picture, what its chosen patch looks at: drawn in place of matrices. */
  readonly patch?: PatchRows | null;
  /** False while some are still to come, which are empty. */
  readonly complete: boolean;
}

/** The thumbnails of the weights, which every page has. */
export function weightThumbs(
  { thumbs, thumbsLeft, patchRows }: Store,
  style: ThumbStyle = "matrices",
): GridThumbs | null {
  const complete = thumbsLeft.value === 0;
  return thumbs.value && { values: thumbs.value, quantity: WEIGHT_FACTS, style, complete, patch: patchRows.value };
}

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
