import { useComputed, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageStack, PageTokens } from "../../contract/page";
import { heat } from "../../draw/heat";
import { density, putPixels } from "../../parts/canvas";
import type { ViewParts } from "../../parts/mount";
import { reportDrawn } from "../../parts/Themed";
import { useWidth } from "../../parts/useWidth";
import { pinPair } from "../../state/selection";
import { Axis } from "./Axis";
import { gestures } from "./gestures";
import { Legend } from "./Legend";
import { NormStrip } from "./NormStrip";
import { createPicture, type Picture } from "./picture";
import { Status } from "./Status";
import { clamped, fitted, type Room, type View, withCell, zoomed } from "./viewport";

/** One head, or the mean of several, as a matrix of queries and keys. */
export function MatrixView({ store, room, plain = false }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root, ".matrix");
  const picture = useComputed((): Picture | null => createPicture(store));
  const size = useComputed((): Room => {
    const { query, key } = store.shownStack.value ?? store.stack.value;
    const [rows, columns] = [query.labels.length, key.labels.length];
    const full = {
      width: Math.max(20, width.value - axisSize(query, 104)),
      height: room.value - (store.valueNorms.value ? 120 : 96),
      rows,
      columns,
    };
    const { cell } = fitted(full);
    return { ...full, height: Math.max(40, Math.min(full.height, rows * cell)) };
  });
  const zoomKey = useComputed(() => store.selection.value.zoom?.join());
  const view = useComputed(() => {
    const [top, left, columns] = zoomKey.value?.split(",").map(Number) ?? [];
    if (columns === undefined) return fitted(size.value);
    return clamped({ top, left, cell: size.value.width / columns }, size.value);
  });
  const move = ({ top, left, cell }: View) =>
    store.choose({ zoom: [top, left, size.value.width / cell].map((number) => Math.round(1000 * number) / 1000) });
  const planeWidth = useComputed(() => Math.min(size.value.width, size.value.columns * view.value.cell));
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [now, shown, scale] = [picture.value, store.shown.value, density()];
    const { height } = size.value;
    if (!canvas || !now || !shown || width.value <= 0) return;
    const pixels = { width: Math.round(planeWidth.value * scale), height: Math.round(height * scale) };
    const { left, top, cell } = view.value;
    putPixels(canvas, heat(now.levels, { ...pixels, left, top, cell: cell * scale }, now.colors, now.rules), pixels);
    reportDrawn(canvas, store, shown, { cell: cell.toFixed(3) });
  });
  const zoom = (factor: number) => {
    const { width, height } = size.value;
    move(zoomed(view.value, factor, { x: width / 2, y: height / 2 }, size.value));
  };
  const reveal = (query: number, key: number) => {
    const next = withCell(view.value, { query, key }, size.value);
    if (next.left !== view.value.left || next.top !== view.value.top) move(next);
    store.preview({ query, key });
  };
  const pin = (query: number, key: number) => {
    const pair = {
      query: store.pieceAt({ side: "query", token: query }),
      key: store.pieceAt({ side: "key", token: key }),
    };
    store.select((now) => pinPair(now, pair));
  };
  const stack = store.shownStack.value ?? store.stack.value;
  const { height } = size.value;
  return (
    <div class="matrix-view" ref={root}>
      <div class="view-bar" hidden={plain}>
        <Status store={store} />
        {zoomKey.value !== undefined && (
          <button class="quiet" data-fit onClick={() => store.choose({ zoom: null })}>
            fit
          </button>
        )}
      </div>
      <div
        class="matrix"
        style={{
          "--matrix-height": `${height}px`,
          "--matrix-width": `${planeWidth.value}px`,
          "--key-axis": `${axisSize(stack.key, 88)}px`,
          "--query-axis": `${axisSize(stack.query, 104)}px`,
        }}
      >
        <Axis side="key" tokens={stack.key} view={view} size={size} store={store} />
        <Axis side="query" tokens={stack.query} view={view} size={size} store={store} />
        <div
          class="matrix-plane"
          role="group"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows, plus and minus work here
          tabIndex={0}
          aria-label="Matrix: arrows move, Enter pins, plus and minus zoom"
          {...gestures({ store, view, size, move, zoom, reveal, pin })}
        >
          <div aria-hidden="true">
            <canvas data-canvas="matrix" />
          </div>
          <WrittenRules stack={stack} view={view.value} />
          <Cross store={store} view={view} size={size} />
        </div>
        <NormStrip store={store} view={view} width={planeWidth} />
      </div>
      {!plain && <Legend store={store} picture={picture.value} view={view} />}
    </div>
  );
}

/** Room for the longest label, as far as there is some. */
function axisSize({ labels }: PageTokens, most: number): number {
  const longest = labels.reduce((length, label) => Math.max(length, label.length), 0);
  return Math.min(most, 18 + 7 * longest);
}

/** Lines between the prompt and what the model wrote after it. */
function WrittenRules({ stack: { query, key }, view: { left, top, cell } }: { stack: PageStack; view: View }) {
  return (
    <>
      {query.written !== undefined && (
        <span class="written-rule" style={{ inset: `${(query.written - top) * cell}px 0 auto`, height: "2px" }} />
      )}
      {key.written !== undefined && (
        <span class="written-rule" style={{ inset: `0 auto 0 ${(key.written - left) * cell}px`, width: "2px" }} />
      )}
    </>
  );
}

interface CrossProps {
  store: ViewParts["store"];
  view: { readonly value: View };
  size: { readonly value: Room };
}

/** Marks the row and the column of the pair that is looked at. */
function Cross({ store, view, size }: CrossProps) {
  const { query, key } = store.pair.value;
  const { left, top, cell } = view.value;
  const { rows, columns } = size.value;
  const side = Math.max(2, cell);
  return (
    <>
      {query !== null && (
        <span
          class="cross"
          style={{
            top: `${(query - top) * cell}px`,
            left: 0,
            width: `${(columns - left) * cell}px`,
            height: `${side}px`,
          }}
        />
      )}
      {key !== null && (
        <span
          class="cross"
          style={{ left: `${(key - left) * cell}px`, top: 0, height: `${(rows - top) * cell}px`, width: `${side}px` }}
        />
      )}
    </>
  );
}
