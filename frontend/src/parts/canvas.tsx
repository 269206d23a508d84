import { type ReadonlySignal, useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

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

/** A text as a strip shows it: how many tokens it has, and the colour of those from one to another. */
export type StripColors = { readonly count: number; readonly colorOf: (first: number, end: number) => number };

interface MinimapProps {
  colors: ReadonlySignal<StripColors | null>;
  /** Height of the box beside it, in pixels. */
  height: number;
  /** Where what is in sight begins, and how much of all it is, where this is not read off the box. */
  window?: readonly string[];
  onGo: (part: number) => void;
  onDrawn?: (canvas: HTMLCanvasElement) => void;
}

/** The whole text as a strip, a colour for the tokens of each line; a click goes there. */
export function Minimap({ colors, height, window: [from, seen] = [], onGo, onDrawn }: MinimapProps) {
  const root = useRef<HTMLDivElement>(null);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const now = colors.value;
    if (!canvas || !now) return;
    const lines = Math.max(1, Math.round(height * density()));
    const pixels = Uint32Array.from({ length: lines }, (_, line) => {
      const first = Math.floor((line * now.count) / lines);
      return now.colorOf(first, Math.max(first + 1, Math.floor(((line + 1) * now.count) / lines)));
    });
    putPixels(canvas, new Uint8ClampedArray(pixels.buffer), { width: 1, height: lines });
    onDrawn?.(canvas);
  });
  const go = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    if (event.buttons > 0) onGo((event.clientY - box.top) / box.height);
  };
  return (
    // The text itself is what keys and screen readers go through.
    <div
      class="minimap rigid relative"
      ref={root}
      data-minimap
      aria-hidden="true"
      title="The whole text; click to go there"
      style={{ width: "18px", height: `${height}px`, "--from": from, "--seen": seen }}
      onPointerDown={go}
      onPointerMove={go}
    >
      <canvas data-canvas="minimap" />
      <span class="minimap-window" />
    </div>
  );
}

/** Side of a cell from which there is a gap around it, and from which it has room for a number. */
const [APART, ROOM] = [4, 22];

interface Cells {
  readonly rows: number;
  readonly columns: number;
  readonly width: number;
  readonly height: number;
  /** Colour of a cell; none for one that there is not. */
  readonly color: (row: number, column: number) => string | false;
  /** What stands in it, and its colour. */
  readonly number?: (row: number, column: number) => readonly [text: string, color: string];
}

/** Draws a grid of cells, each of one colour. */
export function paintCells(canvas: HTMLCanvasElement, cells: Cells): void {
  const { rows, columns, width, height } = cells;
  const scale = density();
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  const context = canvas.getContext("2d");
  if (!context) return;
  const gap = Math.min(width / columns, height / rows) >= APART ? scale : 0;
  context.font = `${10 * scale}px system-ui, sans-serif`;
  [context.textAlign, context.textBaseline] = ["center", "middle"];
  const edge = (at: number, count: number, size: number) => Math.round((at * size) / count);
  for (let row = 0; row < rows; row++) {
    const [top, bottom] = [edge(row, rows, canvas.height), edge(row + 1, rows, canvas.height)];
    for (let column = 0; column < columns; column++) {
      const color = cells.color(row, column);
      if (!color) continue;
      const [left, right] = [edge(column, columns, canvas.width), edge(column + 1, columns, canvas.width)];
      context.fillStyle = color;
      context.fillRect(left, top, Math.max(1, right - left - gap), Math.max(1, bottom - top - gap));
      if (!cells.number || width / columns < ROOM) continue;
      const [text, ink] = cells.number(row, column);
      context.fillStyle = ink;
      context.fillText(text, (left + right - gap) / 2, (top + bottom) / 2);
    }
  }
}
