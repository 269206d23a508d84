import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** The width of an element, or of what a selector finds in it: known before the first drawing, and followed. */
export function useWidth(root: { readonly current: HTMLElement | null }, inside?: string): ReadonlySignal<number> {
  const width = useSignal(0);
  useLayoutEffect(() => {
    const element = inside ? root.current?.querySelector(inside) : root.current;
    if (!element) return;
    return followSize(element, () => (width.value = element.clientWidth));
  }, [root, inside, width]);
  return width;
}

/** Milliseconds between two looks at an element that has no width yet. */
const NO_WIDTH_YET = 500;

/** Measures an element now and whenever its size changes; gives what ends that. */
export function followSize(element: Element, measure: () => void): () => void {
  const observer = new ResizeObserver(measure);
  observer.observe(element);
  measure();
  // Observers are silent in a frame out of sight, and such a frame may begin before it is told its width.
  const waiting = setInterval(() => {
    if (element.clientWidth === 0) return;
    clearInterval(waiting);
    measure();
  }, NO_WIDTH_YET);
  return () => {
    clearInterval(waiting);
    observer.disconnect();
  };
}

/** Puts pixels on a canvas, which takes their size. */
export function putPixels(
  canvas: HTMLCanvasElement,
  pixels: Uint8ClampedArray<ArrayBuffer>,
  { width, height }: { width: number; height: number },
): void {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  if (width > 0 && height > 0) canvas.getContext("2d")?.putImageData(new ImageData(pixels, width), 0, 0);
}

/** Device pixels in one CSS pixel, as far as pictures use them. */
export function density(): number {
  return Math.min(2, globalThis.devicePixelRatio || 1);
}
