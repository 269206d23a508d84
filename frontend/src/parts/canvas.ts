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
