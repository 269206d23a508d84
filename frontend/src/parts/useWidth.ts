import { useSignal } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useLayoutEffect } from "preact/hooks";

/** The width of an element, or of what a selector finds in it: known before the first drawing, and followed. */
export function useWidth(root: { readonly current: HTMLElement | null }, inside?: string): ReadonlySignal<number> {
  const width = useSignal(0);
  useLayoutEffect(() => {
    const element = inside ? root.current?.querySelector(inside) : root.current;
    if (!element) return;
    const measure = () => {
      width.value = element.clientWidth;
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [root, inside, width]);
  return width;
}
