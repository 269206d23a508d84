import { useSignal, useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useEffect, useRef } from "preact/hooks";
import { gridPixels, thumbPeak } from "../../draw/thumbs";
import { density, putPixels, watchWidth } from "../../parts/canvas";
import { type GridThumbs, thumbPixels } from "../../parts/HeadGrid";
import { valueText } from "../../state/quantity";
import { chooseLayer } from "../../state/selection";
import type { Store } from "../../state/store";

interface LayerGridProps {
  store: Store;
  thumbs: ReadonlySignal<GridThumbs | null>;
  /** Largest side of a thumbnail, in CSS pixels. */
  most: number;
  onOpen: () => void;
  onDrawn: (canvas: HTMLElement) => void;
}

const GAP = 26;

/** One thumbnail for each layer, of a quantity that has all heads together. */
export function LayerGrid({ store, thumbs, most, onOpen, onDrawn }: LayerGridProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  useEffect(() => (root.current ? watchWidth(root.current, (now) => (width.value = now)) : undefined), [width]);
  const { layers } = store.stack.value;
  const columns = Math.max(1, Math.min(layers.length, Math.floor(width.value / (most + GAP))));
  const rows = Math.ceil(layers.length / columns);
  const pitch = Math.min(most + GAP, Math.floor(width.value / columns));
  useSignalEffect(() => {
    const now = thumbs.value;
    const canvas = root.current?.querySelector("canvas");
    const wide = width.value;
    if (!now || !canvas || wide === 0) return;
    const scale = density();
    const columns = Math.max(1, Math.min(layers.length, Math.floor(wide / (most + GAP))));
    const pitch = Math.min(most + GAP, Math.floor(wide / columns));
    const size = Math.round((pitch - GAP) * scale);
    const grid = { rows: Math.ceil(layers.length / columns), columns, pitch: pitch * scale, size };
    putPixels(canvas, thumbPixels(store, now, grid), gridPixels(grid));
    onDrawn(canvas);
  });
  const text = valueText(store.quantity.value);
  const now = thumbs.value?.values;
  return (
    <div class="layer-grid" ref={root} style={{ "--grid-pitch": `${pitch}px`, "--grid-gap": `${GAP}px` }}>
      <div aria-hidden="true">
        <canvas data-canvas="grid" style={{ width: `${columns * pitch}px`, height: `${rows * pitch}px` }} />
      </div>
      <div class="layer-cells" style={{ gridTemplateColumns: `repeat(${columns}, ${pitch}px)` }}>
        {layers.map(({ layer }, at) => (
          <button
            type="button"
            key={layer}
            class="layer-cell"
            data-cell={layer}
            aria-pressed={store.layerNumber.value === layer}
            aria-label={`Layer ${layer}, all heads together${now ? `, most ${text(thumbPeak(now, at))}` : ""}`}
            onClick={() => {
              store.select((selection) => chooseLayer(selection, layer));
              onOpen();
            }}
          >
            <span>layer {layer}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
