import { useSignal, useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { PageQuantity } from "../contract/page";
import { parseHex, type RGB } from "../draw/color";
import { kindRamp } from "../draw/kinds";
import { signColors } from "../draw/palette";
import { signedRamp } from "../draw/ramps";
import { gridPixels, type ThumbGrid, thumbLines, thumbMatrices } from "../draw/thumbs";
import { type LayerValues, reordered } from "../draw/values";
import { headWords } from "../state/evidence";
import { kindOf } from "../state/kinds";
import { movedWords } from "../state/moved";
import { WEIGHT_FACTS } from "../state/quantity";
import { openHead, type Selection } from "../state/selection";
import type { Store } from "../state/store";
import { ARROWS } from "./arrows";
import { density, putPixels } from "./canvas";
import { allRows, HeatGrid } from "./HeatGrid";
import { isDimmed, TileLabels } from "./TileLabels";
import { useWidth } from "./useWidth";

export type ThumbStyle = Selection["tiles"];

/** Side in CSS pixels from which on lines can be followed in a thumbnail. */
export const LEAST_LINES = 80;

/** How thumbnails of this side are drawn where a style is wanted. */
export function styleAt(side: number, wanted: ThumbStyle): ThumbStyle {
  return side < LEAST_LINES ? "matrices" : wanted;
}

/** Thumbnails, and how they are drawn. */
export interface GridThumbs {
  readonly values: LayerValues;
  readonly quantity: PageQuantity;
  readonly style: ThumbStyle;
  /** False while some are still to come, which are empty. */
  readonly complete: boolean;
}

/** The thumbnails of the weights, which every page has. */
export function weightThumbs({ thumbs, thumbsLeft }: Store, style: ThumbStyle): GridThumbs | null {
  const complete = thumbsLeft.value === 0;
  return thumbs.value && { values: thumbs.value, quantity: WEIGHT_FACTS, style, complete };
}

export function thumbPixels(
  store: Store,
  { values, quantity, style }: GridThumbs,
  grid: ThumbGrid,
  inks: readonly RGB[] = store.inks.value,
) {
  const dark = store.dark.value;
  const { kinds } = store;
  const rampOf = (head: number) =>
    quantity.signed ? signedRamp(dark) : kindRamp((kinds.value && kindOf(kinds.value, head)) ?? "resting", dark);
  if (style === "matrices") return thumbMatrices(values, grid, rampOf);
  return thumbLines(values, grid, quantity.name === "weight" ? inks : thumbInks(store, quantity, inks));
}

function thumbInks({ dark }: Store, { signed, per }: PageQuantity, inks: readonly RGB[]): readonly RGB[] {
  const signs = signColors(dark.value).map((hex) => parseHex(hex));
  return signed ? signs : per === "layer" ? signs.slice(0, 1) : inks;
}

interface HeadGridProps {
  store: Store;
  thumbs: ReadonlySignal<GridThumbs | null>;
  /** Largest side of a thumbnail, in CSS pixels. */
  most: number;
  /** Least distance between two thumbnails. */
  gap: number;
  /** What a click does beside choosing the head. */
  onOpen?: () => void;
  onDrawn?: (canvas: HTMLElement, side: number) => void;
}

const LABELS = 26;
/** Below this distance of two thumbnails a head is one colour. */
const LEAST_MATRIX = 12;
/** Height that a map of single colours may take beside the views. */
const HEAT_HEIGHT = 420;

/** All heads of all layers: one canvas, with a button over each thumbnail. */
export function HeadGrid({ store, thumbs, most, gap, onOpen, onDrawn }: HeadGridProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const { layers, heads } = store.stack.value;
  const rows = allRows(store);
  const kinds = store.kinds.value;
  const free = (width.value - LABELS) / heads;
  const pitch = Math.max(5, Math.min(most + gap, Math.floor(free)));
  const heat = width.value > 0 && free < LEAST_MATRIX && kinds !== null;
  const lines = rows.flatMap(({ row }, line) => (row < 0 ? [] : [line]));
  useThumbs(root, { store, thumbs, pitch: heat ? 0 : width.value && pitch, gap, onDrawn, lines });
  const open = (row: number, head: number, add: boolean) => {
    const { head_numbers, layers } = store.stack.value;
    store.select((now) => openHead(now, layers[row].layer, head_numbers[head], store.stack.value, add));
    if (!add) onOpen?.();
  };
  if (heat) {
    return (
      <div class="head-grid" ref={root}>
        <HeatGrid
          store={store}
          kinds={kinds}
          width={width.value}
          height={Math.max(HEAT_HEIGHT, most * layers.length)}
          onOpen={onOpen}
          onDrawn={onDrawn}
        />
      </div>
    );
  }
  return (
    <div
      class="head-grid"
      ref={root}
      role="grid"
      aria-label="All heads: rows are layers, columns are heads"
      style={{
        "--grid-pitch": `${pitch}px`,
        "--grid-gap": `${gap}px`,
        "--grid-heads": heads,
        "--grid-labels": `${LABELS}px`,
      }}
      onKeyDown={(event) => moveCell(event, heads, layers.length)}
    >
      <HeadNumbers store={store} pitch={pitch} />
      <div class="grid-rows">
        <div class="grid-canvas" aria-hidden="true">
          <canvas data-canvas="grid" />
        </div>
        {rows.map(({ layer, row, why }) =>
          row < 0 ? (
            <NoAttention key={layer} layer={layer} why={why ?? ""} />
          ) : (
            <GridRow
              key={layer}
              store={store}
              row={row}
              kvHeads={layers[row].kv_heads}
              side={pitch - gap}
              onOpen={open}
            />
          ),
        )}
      </div>
    </div>
  );
}

/** A layer of the model that has no attention. */
function NoAttention({ layer, why }: { layer: number; why: string }) {
  return (
    <div class="grid-row" role="row" data-no-attention={layer}>
      <span class="grid-layer" aria-hidden="true">
        {layer}
      </span>
      <span class="no-attention" role="gridcell" title={`Layer ${layer}: ${why}`}>
        <span>{why}</span>
      </span>
    </div>
  );
}

function HeadNumbers({ store, pitch }: { store: Store; pitch: number }) {
  const { head_numbers: numbers } = store.stack.value;
  const every = Math.ceil(16 / pitch);
  return (
    <div class="grid-heads" aria-hidden="true">
      <span />
      {numbers.map((number, index) => (
        <span key={number} style={{ "--color": store.palette.value[index] }}>
          {index % every === 0 ? number : ""}
        </span>
      ))}
    </div>
  );
}

interface GridRowProps {
  store: Store;
  row: number;
  kvHeads: number;
  /** Of a thumbnail, in CSS pixels. */
  side: number;
  onOpen: (row: number, head: number, add: boolean) => void;
}

function GridRow({ store, row, kvHeads, side, onOpen }: GridRowProps) {
  const { layers, head_numbers: numbers, heads } = store.stack.value;
  const { layer, held } = layers[row];
  const moved = store.quantity.value.name === "weight" ? undefined : store.stack.value.moved;
  const current = store.layerNumber.value === layer;
  const tabbed = current || !layers.some(({ layer }) => layer === store.layerNumber.value);
  return (
    <div class="grid-row" role="row" aria-label={`Layer ${layer}`} data-current={current || undefined}>
      <span class="grid-layer" aria-hidden="true">
        {layer}
      </span>
      {numbers.map((number, index) => (
        <button
          role="gridcell"
          key={number}
          class="grid-cell"
          disabled={held && !held.includes(index)}
          data-cell={`${layer}-${number}`}
          aria-selected={current && store.heads.value.includes(index)}
          aria-label={cellLabel(store, row, index)}
          title={[
            `Layer ${layer}, head ${number}`,
            held && !held.includes(index) ? "not captured" : saidOf(store, row, index),
          ]
            .filter(Boolean)
            .join(": ")}
          data-dim={isDimmed(store, row * heads + index) || undefined}
          data-within={moved?.within[row][index] || undefined}
          data-changed={moved?.changed[row][index] || undefined}
          tabIndex={tabbed && index === (store.heads.value[0] ?? 0) ? 0 : -1}
          style={{ "--color": store.palette.value[index], gridColumn: index + 2 }}
          onClick={(event) => onOpen(row, index, event.shiftKey)}
          onPointerEnter={() => {
            store.hoverHead.value = row * heads + index;
          }}
          onPointerLeave={() => {
            store.hoverHead.value = null;
          }}
        >
          <TileLabels store={store} head={row * heads + index} side={side} />
        </button>
      ))}
      {kvHeads < heads &&
        Array.from({ length: kvHeads }, (_, kv) => (
          <span key={kv} class="kv-frame" aria-hidden="true" style={frameOf(kv, kvHeads, heads)} />
        ))}
    </div>
  );
}

function cellLabel(store: Store, row: number, index: number): string {
  const { layers, head_numbers: numbers, heads } = store.stack.value;
  const { layer, kv_heads: kvHeads } = layers[row];
  const shared = kvHeads < heads ? `, key/value head ${Math.floor((index * kvHeads) / heads)}` : "";
  const said = saidOf(store, row, index);
  return `Layer ${layer}, head ${numbers[index]}${shared}${said && `; ${said}`}`;
}

/** How far a head moved; what its labels are, and how sure; empty where nothing is known. */
function saidOf({ evidence, stack }: Store, row: number, index: number): string {
  const { moved, heads } = stack.value;
  const labels = evidence.value ? headWords(evidence.value, row * heads + index) : "";
  return [moved ? movedWords(moved, row, index) : "", labels].filter(Boolean).join("; ");
}

/** Columns of the heads that share a key/value head. */
function frameOf(kv: number, kvHeads: number, heads: number): { gridColumn: string } {
  const [first, end] = [Math.ceil((kv * heads) / kvHeads), Math.ceil(((kv + 1) * heads) / kvHeads)];
  return { gridColumn: `${first + 2} / ${end + 2}` };
}

interface ThumbsOptions {
  store: Store;
  /** Heads in another order than that of layers, in rows of so many. */
  order?: { readonly heads: readonly number[]; readonly columns: number };
  thumbs: ReadonlySignal<GridThumbs | null>;
  /** 0 before it is known. */
  pitch: number;
  gap: number;
  onDrawn: ((canvas: HTMLElement, side: number) => void) | undefined;
  /** The line of each row, where layers without attention stand between. */
  lines?: readonly number[];
}

/** Draws the thumbnails whenever they, their places or their colours change. */
export function useThumbs(root: { readonly current: HTMLElement | null }, options: ThumbsOptions): void {
  const { pitch, gap, order, lines } = options;
  const given = useRef(options);
  given.current = options;
  const places = useSignal("");
  useLayoutEffect(() => {
    places.value = `${pitch} ${gap} ${order?.heads.join()} ${lines?.join()}`;
  });
  useSignalEffect(() => {
    void places.value;
    drawThumbs(root.current?.querySelector("canvas"), given.current);
  });
}

function drawThumbs(canvas: HTMLCanvasElement | null | undefined, options: ThumbsOptions): void {
  const { store, pitch, gap, onDrawn, order, lines } = options;
  const thumbs = options.thumbs.value;
  const { layers, heads } = store.stack.value;
  if (!thumbs || !canvas || pitch === 0 || thumbs.values.heads !== layers.length * heads) return;
  const scale = density();
  const columns = order?.columns ?? heads;
  const grid: ThumbGrid = {
    rows: order ? Math.ceil(order.heads.length / columns) : (lines?.at(-1) ?? layers.length - 1) + 1,
    ...(lines && !order && { lines }),
    columns,
    pitch: pitch * scale,
    size: Math.max(2, Math.round((pitch - gap) * scale)),
  };
  const inks = order?.heads.map((head) => store.inks.value[head % heads]);
  const style = styleAt(pitch - gap, thumbs.style);
  const shown = { ...thumbs, style, ...(order && { values: reordered(thumbs.values, order.heads) }) };
  putPixels(canvas, thumbPixels(store, shown, grid, inks), gridPixels(grid));
  onDrawn?.(canvas, pitch - gap);
}

const STEPS: typeof ARROWS = {
  ...ARROWS,
  Home: [0, -1e6],
  End: [0, 1e6],
  PageUp: [-1e6, 0],
  PageDown: [1e6, 0],
};

/** Moves the keyboard focus from cell to cell. */
export function moveCell(event: KeyboardEvent & { currentTarget: HTMLElement }, columns: number, rows: number): void {
  const step = STEPS[event.key];
  const cells = [...event.currentTarget.querySelectorAll<HTMLElement>(".grid-cell")];
  const at = cells.indexOf(event.target as HTMLElement);
  if (!step || at < 0) return;
  event.preventDefault();
  const inside = (value: number, count: number) => Math.min(count - 1, Math.max(0, value));
  const row = inside(Math.floor(at / columns) + step[0], rows);
  const column = inside((at % columns) + step[1], columns);
  for (const cell of cells) cell.tabIndex = -1;
  const next = cells[Math.min(cells.length - 1, row * columns + column)];
  next.tabIndex = 0;
  next.focus();
}
