import { type ReadonlySignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { scrollTo, visibleTokens } from "../../draw/columns";
import { isPair } from "../../draw/mask";
import type { Place, Side } from "../../draw/place";
import { density } from "../../parts/canvas";
import { followSize } from "../../parts/followSize";
import { TokenColumn } from "../../parts/TokenColumn";
import { togglePin } from "../../state/selection";
import type { Hover, Shown, Store } from "../../state/store";
import { createLayout, type Layout } from "./geometry";
import { neighbour } from "./keyboard";
import { paintAll, paintToken } from "./paint";
import { markFocus, markHidden, tokenElements, writeNorms, writeReadouts } from "./readouts";
import { NormName, Summary } from "./Summary";

/** Above this, style transitions cost more than all drawing. */
const MOST_ANIMATED = 96;

interface PictureProps {
  store: Store;
  /** Height that the picture may take. */
  room: ReadonlySignal<number>;
  onDrawn: (canvas: HTMLElement, shown: Shown) => void;
}

/** Two columns of tokens and the lines between them. */
export function Picture({ store, room, onDrawn }: PictureProps) {
  const root = useRef<HTMLDivElement>(null);
  const layout = useMemo(() => createLayout(store, room), [store, room]);
  useLineArea(root, layout);
  useColumns(root, store, layout);
  useLines(root, store, layout, onDrawn);
  useReadouts(root, store, layout);
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
      data-pair={pair || undefined}
      data-norms={store.valueNorms.value !== null || undefined}
      style={{ "--pitch": `${pitch}px`, "--height": `${height}px`, "--longest": `${longest}px` }}
      onScroll={(event) => {
        layout.scroll.value = event.currentTarget.scrollTop;
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
            <NormName store={store} />
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
function useLineArea(root: Root, { lineArea }: Layout): void {
  useEffect(() => {
    const area = root.current?.querySelector(".lines");
    if (!area) return;
    return followSize(area, () => {
      const width = area.clientWidth;
      const now = density();
      const { width: oldWidth, density: oldDensity } = lineArea.peek();
      if (width !== oldWidth || now !== oldDensity) lineArea.value = { width, density: now };
    });
  }, [root, lineArea]);
}

/** Moves the columns with the scroll position, in step with the lines. */
function useColumns(root: Root, store: Store, { geometry }: Layout): void {
  useSignalEffect(() => {
    void store.shownStack.value;
    for (const side of ["query", "key"] as const) {
      const column = root.current?.querySelector<HTMLElement>(`[data-column="${side}"]`);
      if (column) column.style.transform = `translateY(${geometry.value[side].top}px)`;
    }
  });
}

/** Scrolls to a pinned token that is out of sight, as when a link is opened. */
function usePinInSight(root: Root, store: Store, { geometry, scroll }: Layout): void {
  useSignalEffect(() => {
    const { query, key } = store.pins.value;
    const side = query.length > 0 ? "query" : "key";
    const [token] = side === "query" ? query : key;
    if (token === undefined || !store.shownStack.value || !root.current) return;
    const { [side]: column, longest, height } = geometry.peek();
    const [first, end] = visibleTokens(column, height);
    if (token >= first && token < end) return;
    root.current.scrollTop = scrollTo(token, column, longest, height, scroll.peek());
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

function useReadouts(root: Root, store: Store, { geometry }: Layout): void {
  const stack = store.shownStack.value;
  useSignalEffect(() => {
    if (root.current) markFocus(root.current, store);
  });
  useSignalEffect(() => {
    if (root.current) writeReadouts(root.current, store, geometry.value, store.attention.value);
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
      markHidden(sides.query, mask.query, store.selection.peek().mute);
      markHidden(sides.key, mask.key, store.selection.peek().mute);
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
  if (place && store.mask.value?.[place.side][place.token]) store.select((now) => togglePin(now, place, add));
}

/** Previews the token that the keyboard has come to, and leaves the column's tab stop there. */
function focusToken(target: EventTarget | null, store: Store): void {
  const place = placeOf(target);
  if (!place || !(target instanceof HTMLElement)) return;
  target.parentElement?.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
  store.preview(hoverAt(place));
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
  const next = neighbour(place, event.key, { query: query.tokens, key: key.tokens });
  if (!next) return;
  event.preventDefault();
  const root = event.currentTarget;
  root.scrollTop = scrollTo(next.token, geometry.value[next.side], longest, height, layout.scroll.value);
  layout.scroll.value = root.scrollTop;
  const selector = `[data-side="${next.side}"][data-token="${next.token}"]`;
  root.querySelector<HTMLElement>(selector)?.focus({ preventScroll: true });
}
