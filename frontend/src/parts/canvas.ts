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

/** Calls back with the width of an element, now and when it changes. */
export function watchWidth(element: Element, report: (width: number) => void): () => void {
  let last = -1;
  const measure = () => {
    const width = element.clientWidth;
    if (width !== last) report(width);
    last = width;
  };
  const observer = new ResizeObserver(measure);
  observer.observe(element);
  measure();
  return () => observer.disconnect();
}
