import { useSignal } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useLayoutEffect } from "preact/hooks";
import { followSize } from "./followSize";

/** The width of an element, or of what a selector finds in it: known before the first drawing, and followed. */
export function useWidth(root: { readonly current: HTMLElement | null }, inside?: string): ReadonlySignal<number> {
  const width = useSignal(0);
  useLayoutEffect(() => {
    const element = inside ? root.current?.querySelector(inside) : root.current;
    if (!element) return;
    return followSize(element, () => {
      width.value = element.clientWidth;
    });
  }, [root, inside, width]);
  return width;
}
