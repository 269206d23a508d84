import { useComputed, useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useRef } from "preact/hooks";
import { gridPixels, thumbPeak } from "../../draw/thumbs";
import { density, putPixels } from "../../parts/canvas";
import { type GridThumbs, styleAt, thumbPixels } from "../../parts/HeadGrid";
import { useWidth } from "../../parts/useWidth";
import { valueText } from "../../state/quantity";
import { chooseLayer } from "../../state/selection";
import type { Store } from "../../state/store";

interface LayerGridProps {
  store: Store;
  thumbs: ReadonlySignal<GridThumbs | null>;
  /** Height that the thumbnails may take. */
  room: ReadonlySignal<number>;
  onOpen: () => void;
  onDrawn: (canvas: HTMLElement, side: number) => void;
}

const GAP = 26;
/** Height of what stands around the thumbnails. */
const AROUND = 60;
const SMALLEST = 90;
const LARGEST = 480;

/** One thumbnail for each layer, of a quantity that has all heads together. */
export function LayerGrid({ store, thumbs, room, onOpen, onDrawn }: LayerGridProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const { layers } = store.stack.value;
  const shape = useComputed(() => bestGrid(store.stack.value.layers.length, width.value, room.value - AROUND));
  const { columns, rows, pitch } = shape.value;
  useSignalEffect(() => {
    const now = thumbs.value;
    const canvas = root.current?.querySelector("canvas");
    const { columns, rows, pitch } = shape.value;
    if (!now || !canvas || width.value === 0) return;
    const scale = density();
    const grid = { rows, columns, pitch: pitch * scale, size: Math.max(2, Math.round((pitch - GAP) * scale)) };
    putPixels(canvas, thumbPixels(store, { ...now, style: styleAt(pitch - GAP, now.style) }, grid), gridPixels(grid));
    onDrawn(canvas, pitch - GAP);
  });
  const text = valueText(store.quantity.value);
  const now = thumbs.value?.complete && thumbs.value.values;
  return (
    <div
      class="layer-grid"
      ref={root}
      style={{ "--grid-pitch": `${pitch}px`, "--grid-gap": `${GAP}px`, "--grid-width": `${columns * pitch - GAP}px` }}
    >
      <div aria-hidden="true">
        <canvas data-canvas="grid" style={{ width: `${columns * pitch}px`, height: `${rows * pitch}px` }} />
      </div>
      <div class="layer-cells" style={{ gridTemplateColumns: `repeat(${columns}, ${pitch}px)` }}>
        {layers.map(({ layer }, at) => (
          <button
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

/** The grid with the largest thumbnails that fits, or scrolls where even small ones do not. */
function bestGrid(count: number, width: number, height: number) {
  const pitchOf = (columns: number) => Math.min(width / columns, height / Math.ceil(count / columns), LARGEST + GAP);
  const all = Array.from({ length: count }, (_, at) => at + 1);
  const columns = all.reduce((best, now) => (pitchOf(now) > pitchOf(best) ? now : best));
  const fits = Math.floor(pitchOf(columns));
  if (fits >= SMALLEST || width === 0) return { columns, rows: Math.ceil(count / columns), pitch: Math.max(1, fits) };
  const most = Math.max(1, Math.floor(width / SMALLEST));
  return { columns: most, rows: Math.ceil(count / most), pitch: Math.floor(width / most) };
}
