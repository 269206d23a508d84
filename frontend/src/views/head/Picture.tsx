import { computed, type ReadonlySignal, useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { scrollTo, visibleTokens } from "../../draw/columns";
import { isPair } from "../../draw/mask";
import type { Focus, Place, Side } from "../../draw/place";
import { density } from "../../parts/canvas";
import { followSize } from "../../parts/followSize";
import { TokenColumn } from "../../parts/TokenColumn";
import { useWidth } from "../../parts/useWidth";
import { directionOf, isUpright } from "../../state/script";
import type { Hover, Shown, Store } from "../../state/store";
import { createLayout, type Layout } from "./geometry";
import { neighbour } from "./keyboard";
import { paintAll, paintToken } from "./paint";
import { markFocus, markHidden, tokenElements, writeNorms, writeReadouts } from "./readouts";
import { NormName, Summary } from "./Summary";

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
      createLayout(
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
  const large = stack.query.labels.length + stack.key.labels.length > 2 * MOST_ANIMATED;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the tokens inside are the interactive elements
    <div
      class="scroller"
      ref={root}
      data-large={large || undefined}
      data-rows={rows.value || undefined}
      dir={rows.value ? directionOf(stack.query) : undefined}
      data-pair={pair || undefined}
      data-norms={store.valueNorms.value !== null || undefined}
      style={{ "--pitch": `${pitch}px`, "--height": `${height}px`, "--longest": `${longest}px` }}
      onScroll={(event) => {
        layout.scroll.value = scrolled(event.currentTarget, layout);
      }}
      onPointerOver={(event) => store.preview(hoverAt(placeOf(event.target)))}
      onPointerLeave={() => store.preview({})}
      onFocusIn={(event) => focusToken(event.target, store)}
      onFocusOut={() => store.preview({})}
      onClick={(event) => pinToken(event.target, store, event.shiftKey)}
      onKeyDown={(event) => tokenKey(event, store, layout)}
    >
      <div class="extent">
        <div class="frame">
          <div class="column-names">
            <span>from (query)</span>
            <Summary store={store} />
            <NormName store={store} received={received} />
          </div>
          <div class="picture">
            <TokenColumn
              key={`${stack.name}-query`}
              side="query"
              tokens={stack.query}
              pictures={store.pictures.value}
              pair={pair}
            />
            <div class="lines" aria-hidden="true">
              <canvas data-canvas="all" />
              <canvas data-canvas="token" />
            </div>
            <TokenColumn
              key={`${stack.name}-key`}
              side="key"
              tokens={stack.key}
              pictures={store.pictures.value}
              pair={pair}
            />
          </div>
        </div>
      </div>
    </div>
  );
}

type Root = { readonly current: HTMLDivElement | null };

/** Follows the width between the columns and the density of the screen. */
function useLineArea(root: Root, { lineArea, rows }: Layout): void {
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
function scrolled(root: HTMLElement, { rows }: Layout): number {
  return rows.value ? Math.abs(root.scrollLeft) : root.scrollTop;
}

function scrollPicture(root: HTMLElement, { rows }: Layout, to: number): void {
  if (rows.value) root.scrollLeft = root.dir === "rtl" ? -to : to;
  else root.scrollTop = to;
}

/** Moves the columns with the scroll position, in step with the lines. */
function useColumns(root: Root, store: Store, { geometry, rows }: Layout): void {
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
function usePinInSight(root: Root, store: Store, layout: Layout): void {
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

function useLines(root: Root, store: Store, layout: Layout, onDrawn: PictureProps["onDrawn"]): void {
  useSignalEffect(() => {
    const canvas = root.current?.querySelector<HTMLCanvasElement>('[data-canvas="all"]');
    if (canvas && paintAll(canvas, store, layout) && store.shown.value) onDrawn(canvas, store.shown.value);
  });
  useSignalEffect(() => {
    const canvas = root.current?.querySelector<HTMLCanvasElement>('[data-canvas="token"]');
    const focus = store.focus.value;
    if (canvas && focus) paintToken(canvas, store, layout, focus);
  });
}

function useReadouts(root: Root, store: Store, { geometry }: Layout, received: boolean): void {
  const stack = store.shownStack.value;
  useSignalEffect(() => {
    if (root.current) markFocus(root.current, store);
  });
  useSignalEffect(() => {
    if (!root.current) return;
    const focus = store.focus.value;
    if (focus || !received) writeReadouts(root.current, store, geometry.value, focus, store.attention.value);
    else if (!store.kinds.value?.said.causal)
      writeReadouts(root.current, store, geometry.value, EVERY_QUERY, store.overall.value);
  });
  useEffect(() => {
    const keys = root.current && tokenElements(root.current, "key");
    return keys ? store.valueNorms.subscribe((norms) => writeNorms(keys, norms)) : undefined;
  }, [root, store, stack]);
  // Needs the elements of the new stack, which are there only after rendering.
  useEffect(() => {
    const sides = root.current && {
      query: tokenElements(root.current, "query"),
      key: tokenElements(root.current, "key"),
    };
    if (!sides) return;
    return store.mask.subscribe((mask) => {
      if (!mask || store.shownStack.peek() !== stack) return;
      markHidden(sides.query, mask.query, store.selection.peek().hide_special);
      markHidden(sides.key, mask.key, store.selection.peek().hide_special);
    });
  }, [root, store, stack]);
}

function placeOf(target: EventTarget | null): Place | null {
  const element = target instanceof Element ? target.closest<HTMLElement>("[data-token]") : null;
  return element && { side: element.dataset.side as Side, token: Number(element.dataset.token) };
}

function hoverAt(place: Place | null): Hover {
  return place ? { [place.side]: place.token } : {};
}

function pinToken(target: EventTarget | null, store: Store, add: boolean): void {
  const place = placeOf(target);
  if (place && store.mask.value?.[place.side][place.token]) store.pin(place, add);
}

/** Previews the token that the keyboard has come to, and leaves the column's tab stop there. */
function focusToken(target: EventTarget | null, store: Store): void {
  const place = placeOf(target);
  if (!place || !(target instanceof HTMLElement)) return;
  target.parentElement?.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
  store.preview(hoverAt(place));
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

function tokenKey(event: KeyboardEvent & { currentTarget: HTMLElement }, store: Store, layout: Layout): void {
  const place = placeOf(event.target);
  if (!place) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    pinToken(event.target, store, event.shiftKey);
    return;
  }
  const { geometry } = layout;
  const { query, key, longest, height } = geometry.value;
  const next = neighbour(place, turned(event.key, event.currentTarget), { query: query.tokens, key: key.tokens });
  if (!next) return;
  event.preventDefault();
  const root = event.currentTarget;
  scrollPicture(root, layout, scrollTo(next.token, geometry.value[next.side], longest, height, layout.scroll.value));
  layout.scroll.value = scrolled(root, layout);
  const selector = `[data-side="${next.side}"][data-token="${next.token}"]`;
  root.querySelector<HTMLElement>(selector)?.focus({ preventScroll: true });
}
