import type { ReadonlySignal } from "@preact/signals";
import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { density, putPixels } from "./useWidth";

/** A text as a strip shows it: how many tokens it has, and the colour of those from one to another. */
export interface StripColors {
  readonly count: number;
  readonly colorOf: (first: number, end: number) => number;
}

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
      class="minimap relative"
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
