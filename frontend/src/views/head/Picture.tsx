import { computed, type ReadonlySignal, useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Focus, isPair, otherSide, type Place, type Side, scrollTo, visibleTokens } from "../../draw/tokens";
import { density, followSize, useWidth } from "../../parts/canvas";
import { reportDrawn, type ViewParts } from "../../parts/mount";
import { type KeyInside, TokenColumn, tokenEvents } from "../../parts/tokens";
import { isShare } from "../../state/quantity";
import { FEW_QUERIES } from "../../state/selection";
import type { Shown, Store } from "../../state/store";
import { counted, directionOf, isUpright, percent } from "../../state/words";
import * as paint from "./paint";

/** Above this, style transitions cost more than all drawing. */
const MOST_ANIMATED = 96;

/** Stands for all queries where what keys receive of all is written. */
const EVERY_QUERY: Focus = { side: "query", tokens: [] };

interface PictureProps {
  store: Store;
  /** Height that the picture may take. */
  room: ReadonlySignal<number>;
  /** Where nothing is looked at: what share each key gets of all, beside the keys. */
  received?: boolean;
  onDrawn: (canvas: HTMLElement, shown: Shown) => void;
}

/** Two columns of tokens and the lines between them. */
export function Picture({ store, room, received = false, onDrawn }: PictureProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const rows = useComputed(() => inRows(store));
  // The room is that along the tokens: of rows the width.
  const layout = useMemo(
    () =>
      paint.createLayout(
        store,
        computed(() => (rows.value ? Math.max(120, width.value - 12) : room.value)),
        rows,
      ),
    [store, room, rows, width],
  );
  useLineArea(root, layout);
  useColumns(root, store, layout);
  useLines(root, store, layout, onDrawn);
  useReadouts(root, store, layout, received);
  usePinInSight(root, store, layout);

  const stack = store.shownStack.value ?? store.stack.value;
  const { height, longest, pitch } = layout.geometry.value;
  const pair = isPair(stack);
  const pictures = store.pictures.value;
  const column = (side: "query" | "key") => (
    <TokenColumn key={`${stack.name}-${side}`} {...{ side, pair, pictures }} tokens={stack[side]} />
  );
  const large = stack.query.labels.length + stack.key.labels.length > 2 * MOST_ANIMATED;
  return (
    <div
      class="scroller scrolls"
      ref={root}
      data-large={large || undefined}
      data-rows={rows.value || undefined}
      dir={rows.value ? directionOf(stack.query) : undefined}
      data-pair={pair || undefined}
      style={{ "--pitch": `${pitch}px`, "--height": `${height}px`, "--longest": `${longest}px` }}
      onScroll={(event) => (layout.scroll.value = scrolled(event.currentTarget, layout))}
      {...tokenEvents(store, (event, place) => nextToken(event, place, layout))}
    >
      <div class="extent">
        <div class="frame">
          <div class="column-names muted stack">
            <span class="cut">from (query)</span>
            <Summary store={store} />
            <span class="cut" title="share that each gets">
              to (key){received && <small> · share</small>}
            </span>
          </div>
          <div class="picture stack">
            {column("query")}
            <div class="lines relative" aria-hidden="true">
              <canvas data-canvas="all" />
              <canvas data-canvas="token" />
            </div>
            {column("key")}
          </div>
        </div>
      </div>
    </div>
  );
}

type Root = { readonly current: HTMLDivElement | null };

/** Follows the width between the columns and the density of the screen. */
function useLineArea(root: Root, { lineArea, rows }: paint.Layout): void {
  const across = rows.value;
  useEffect(() => {
    const area = root.current?.querySelector(".lines");
    if (!area) return;
    return followSize(area, () => {
      const width = across ? area.clientHeight : area.clientWidth;
      const now = density();
      const { width: oldWidth, density: oldDensity } = lineArea.peek();
      if (width !== oldWidth || now !== oldDensity) lineArea.value = { width, density: now };
    });
  }, [root, lineArea, across]);
}

/** Where a picture is scrolled to along its tokens; from right to left browsers count below 0. */
function scrolled(root: HTMLElement, { rows }: paint.Layout): number {
  return rows.value ? Math.abs(root.scrollLeft) : root.scrollTop;
}

function scrollPicture(root: HTMLElement, { rows }: paint.Layout, to: number): void {
  if (rows.value) root.scrollLeft = root.dir === "rtl" ? -to : to;
  else root.scrollTop = to;
}

/** Moves the columns with the scroll position, in step with the lines. */
function useColumns(root: Root, store: Store, { geometry, rows }: paint.Layout): void {
  useSignalEffect(() => {
    void store.shownStack.value;
    for (const side of ["query", "key"] as const) {
      const column = root.current?.querySelector<HTMLElement>(`[data-column="${side}"]`);
      const { top } = geometry.value[side];
      const along = root.current?.dir === "rtl" ? -top : top;
      if (column) column.style.transform = rows.value ? `translateX(${along}px)` : `translateY(${top}px)`;
    }
  });
}

/** Scrolls to a pinned token that is out of sight, as when a link is opened. */
function usePinInSight(root: Root, store: Store, layout: paint.Layout): void {
  const { geometry, scroll } = layout;
  useSignalEffect(() => {
    const { query, key } = store.pins.value;
    const side = query.length > 0 ? "query" : "key";
    const [token] = side === "query" ? query : key;
    if (token === undefined || !store.shownStack.value || !root.current) return;
    const { [side]: column, longest, height } = geometry.peek();
    const [first, end] = visibleTokens(column, height);
    if (token >= first && token < end) return;
    scrollPicture(root.current, layout, scrollTo(token, column, longest, height, scroll.peek()));
  });
}

function useLines(root: Root, store: Store, layout: paint.Layout, onDrawn: PictureProps["onDrawn"]): void {
  useSignalEffect(() => {
    const canvas = root.current?.querySelector<HTMLCanvasElement>('[data-canvas="all"]');
    if (canvas && paint.paintAll(canvas, store, layout) && store.shown.value) onDrawn(canvas, store.shown.value);
  });
  useSignalEffect(() => {
    const canvas = root.current?.querySelector<HTMLCanvasElement>('[data-canvas="token"]');
    const focus = store.focus.value;
    if (canvas && focus) paint.paintToken(canvas, store, layout, focus);
  });
}

function useReadouts(root: Root, store: Store, { geometry }: paint.Layout, received: boolean): void {
  const stack = store.shownStack.value;
  useSignalEffect(() => {
    if (root.current) paint.markFocus(root.current, store);
  });
  useSignalEffect(() => {
    if (!root.current) return;
    const focus = store.focus.value;
    if (focus || !received) paint.writeReadouts(root.current, store, geometry.value, focus, store.attention.value);
    else if (!store.kinds.value?.said.causal)
      paint.writeReadouts(root.current, store, geometry.value, EVERY_QUERY, store.overall.value);
  });
  // Needs the elements of the new stack, which are there only after rendering.
  useEffect(() => {
    const sides = root.current && {
      query: paint.tokenElements(root.current, "query"),
      key: paint.tokenElements(root.current, "key"),
    };
    if (!sides) return;
    return store.mask.subscribe((mask) => {
      if (!mask || store.shownStack.peek() !== stack) return;
      paint.markHidden(sides.query, mask.query, store.selection.peek().hide_special);
      paint.markHidden(sides.key, mask.key, store.selection.peek().hide_special);
    });
  }, [root, store, stack]);
}

/** The arrow of columns that an arrow stands for where the tokens stand in rows. */
function turned(key: string, { dataset, dir }: HTMLElement): string {
  if (dataset.rows === undefined) return key;
  const [on, back] = dir === "rtl" ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
  const arrows: Record<string, string> = {
    ArrowRight: on,
    ArrowLeft: back,
    ArrowDown: "ArrowRight",
    ArrowUp: "ArrowLeft",
  };
  return arrows[key] ?? key;
}

/** Whether the tokens stand in rows: where that is asked for, and for scripts that are read well so. */
function inRows({ view, selection, stack }: Store): boolean {
  if (view.value !== "head") return false;
  const { layout } = selection.value;
  return layout === "rows" || (layout === "auto" && isUpright(stack.value.query) && !stack.value.query.areas);
}

/** Where a key leads, brought into sight. */
function nextToken(event: KeyInside, place: Place, layout: paint.Layout): HTMLElement | null {
  const { query, key, longest, height } = layout.geometry.value;
  const root = event.currentTarget;
  const next = neighbour(place, turned(event.key, root), { query: query.tokens, key: key.tokens });
  if (!next) return null;
  const column = { query, key }[next.side];
  scrollPicture(root, layout, scrollTo(next.token, column, longest, height, layout.scroll.value));
  layout.scroll.value = scrolled(root, layout);
  return root.querySelector<HTMLElement>(`[data-side="${next.side}"][data-token="${next.token}"]`);
}

/** The attention of one layer: lines from query to key, colour = head, strength = weight. */
export function HeadView({ store, room }: ViewParts) {
  return (
    <>
      <Picture
        store={store}
        room={room}
        onDrawn={(canvas, shown) => reportDrawn(canvas, store, shown, { lines: String(store.summary.value.lines) })}
      />
      <SinkNote store={store} />
    </>
  );
}

/** What a share is told of. */
function massWord({ name, label, signed }: Store["quantity"]["value"]): string {
  return name === "weight" ? "attention" : signed ? `${label}s’ sizes` : label;
}

/** How much of the attention the picture shows. */
function Summary({ store }: { store: Store }) {
  const { lines, part } = store.summary.value;
  const above = isShare(store.quantity.value) ? " above even" : "";
  return (
    <span class="summary cut" data-summary>
      {store.stack.value.query.labels.length >= FEW_QUERIES
        ? "point at a token for its lines"
        : `${counted(lines, "line")}${above} · ${percent(part)} of the ${massWord(store.quantity.value)}`}
    </span>
  );
}

/** Says when a query's weights do not sum to 1. */
function SinkNote({ store }: { store: Store }) {
  const layer = store.shown.value?.layer;
  if (layer?.row_sums !== "less") return null;
  return (
    <p class="note muted" data-sink-note>
      {layer.not_kept === undefined
        ? "Rows sum to less than 1: the rest went to a learned sink, no token."
        : `Not kept: on average ${percent(layer.not_kept)} of each query’s weight, cut before.`}
    </p>
  );
}

const PAGE = 10;
const STEPS: Readonly<Record<string, number>> = { ArrowUp: -1, ArrowDown: 1, PageUp: -PAGE, PageDown: PAGE };

/** Where a key moves to from a token; null where it does not move. */
export function neighbour(place: Place, key: string, counts: Record<Side, number>): Place | null {
  const last = counts[place.side] - 1;
  const within = (token: number) => ({ ...place, token: Math.min(last, Math.max(0, token)) });
  if (key in STEPS) return within(place.token + STEPS[key]);
  if (key === "Home") return within(0);
  if (key === "End") return within(last);
  const side: Side | null = key === "ArrowLeft" ? "query" : key === "ArrowRight" ? "key" : null;
  if (side === null || side === place.side) return null;
  return { side, token: Math.min(place.token, counts[otherSide(place.side)] - 1) };
}
