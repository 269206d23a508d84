import { useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useRef } from "preact/hooks";
import { density, putPixels } from "../../parts/canvas";
import type { Heat } from "./TextView";

const WIDTH = 18;

interface MinimapProps {
  heat: ReadonlySignal<Heat | null>;
  /** Height of the box that scrolls. */
  height: number;
}

/** The whole text as a strip, each line the strongest of its tokens; a click goes there. */
export function Minimap({ heat, height }: MinimapProps) {
  const root = useRef<HTMLDivElement>(null);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const now = heat.value;
    if (!canvas || !now) return;
    const lines = Math.max(1, Math.round(height * density()));
    const pixels = new Uint32Array(lines);
    const count = now.values.length;
    for (let line = 0; line < lines; line++) {
      const first = Math.floor((line * count) / lines);
      const end = Math.max(first + 1, Math.floor(((line + 1) * count) / lines));
      let most = first;
      for (let token = first; token < end; token++) {
        if (Math.abs(now.values[token]) > Math.abs(now.values[most])) most = token;
      }
      pixels[line] = now.ramp[now.bytes[most]];
    }
    putPixels(canvas, new Uint8ClampedArray(pixels.buffer), { width: 1, height: lines });
  });
  const go = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    if (event.buttons === 0) return;
    const box = event.currentTarget.getBoundingClientRect();
    const scroller = event.currentTarget.parentElement?.querySelector(".text-scroll");
    if (scroller) scroller.scrollTop = ((event.clientY - box.top) / box.height) * scroller.scrollHeight - height / 2;
  };
  return (
    // The text itself is what keys and screen readers go through.
    <div
      class="minimap"
      ref={root}
      data-minimap
      aria-hidden="true"
      title="The whole text; click to go there"
      style={{ width: `${WIDTH}px`, height: `${height}px` }}
      onPointerDown={go}
      onPointerMove={go}
    >
      <canvas data-canvas="minimap" />
      <span class="minimap-window" />
    </div>
  );
}
