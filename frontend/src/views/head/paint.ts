import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import { signColors } from "../../draw/color";
import { collectLines, everyLine, exposure, ink, type LineOptions } from "../../draw/lines";
import { type Column, columnTop, type Focus, otherSide, pitchFor, type Side, visibleTokens } from "../../draw/tokens";
import { codeOf, largest, topOf } from "../../draw/values";
import { putPixels } from "../../parts/canvas";
import { FEW_QUERIES } from "../../state/selection";
import type { Store } from "../../state/store";

/** Sizes of the picture in CSS pixels: the height is that of what can be seen. */
interface Geometry extends Readonly<Record<Side, Column>> {
  readonly height: number;
  readonly longest: number;
  readonly pitch: number;
}

/** Height of a token that a finger can hit. */
const TOUCHED = 32;

function coarse(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}

/**
 * How the picture is laid out: from the number of tokens, the room there is along them and how far it is scrolled.
 * It is worked out for columns; rows are the same with both axes exchanged.
 */
export function createLayout(store: Store, room: ReadonlySignal<number>, rows: ReadonlySignal<boolean>) {
  const scroll = signal(0);
  /** Width of the part with the lines, and device pixels in one CSS pixel. */
  const lineArea = signal({ width: 0, density: 1 });
  const geometry = computed((): Geometry => {
    const stack = store.shownStack.value ?? store.stack.value;
    const counts: Record<Side, number> = { query: stack.query.labels.length, key: stack.key.labels.length };
    const most = Math.max(counts.query, counts.key, 1);
    const pitch = pitchFor(most, room.value, coarse() ? TOUCHED : undefined);
    const longest = most * pitch;
    const height = Math.min(longest, room.value);
    const column = (side: Side): Column => {
      const tokens = counts[side];
      return { tokens, pitch, top: columnTop(tokens * pitch, longest, height, scroll.value) };
    };
    return { height, longest, pitch, query: column("query"), key: column("key") };
  });
  return { scroll, lineArea, geometry, rows };
}

export type Layout = ReturnType<typeof createLayout>;

/** The mean coverage that auto exposure aims at; light on dark needs less. */
const AIM = { light: 0.68, dark: 0.55 };

/** Lines of a token that are fainter than one step of a screen are not drawn. */
const FAINTEST = 1 / 255;

/** Draws all chosen lines; false where there is nothing to draw on or from yet. */
export function paintAll(canvas: HTMLCanvasElement, store: Store, layout: Layout): boolean {
  const [values, mask] = [store.values.value, store.mask.value];
  const { width } = layout.lineArea.value;
  if (!values || !mask || width === 0) return false;
  const lineWidth = 1.9;
  const gain = exposure({
    mass: store.summary.value.mass / topOf(values, store.map.value),
    lineWidth,
    height: layout.geometry.value.longest,
    aim: store.dark.value ? AIM.dark : AIM.light,
    most: 2.8,
  });
  // So many lines at once are one grey surface: then those of a token alone.
  const many = values.queries >= FEW_QUERIES;
  const cutoffs = many ? everyLine(mask, 256) : store.cutoffs.value;
  paint(canvas, store, layout, { lineWidth, gain, gamma: 1, mask, cutoffs });
  return true;
}

/** Draws all lines of one token, the strongest always equally dark. */
export function paintToken(canvas: HTMLCanvasElement, store: Store, layout: Layout, only: Focus): void {
  const [values, mask, attention] = [store.values.value, store.mask.value, store.attention.value];
  if (!values || !mask || !attention || layout.lineArea.value.width === 0) return;
  const gamma = 0.85;
  const most = largest(attention) / topOf(values, store.map.value);
  const gain = Math.min(12, 2.2 / most ** gamma);
  const visible = codeOf(values).sizes.findIndex((size) => gain * size ** gamma >= FAINTEST);
  const cutoffs = store.cutoffs.value.map((least) => Math.max(least, visible));
  paint(canvas, store, layout, { lineWidth: 2, gain, gamma, mask, cutoffs, only });
}

type Pen = Omit<LineOptions, "height" | Side | "reach"> & { readonly lineWidth: number };

/** All in device pixels. */
function paint(canvas: HTMLCanvasElement, store: Store, layout: Layout, { lineWidth, ...pen }: Pen): void {
  const { width, density } = layout.lineArea.value;
  const { height, query, key } = layout.geometry.value;
  const values = store.values.value;
  if (!values) return;
  const scaled = (column: Column) => ({ ...column, pitch: column.pitch * density, top: column.top * density });
  const size = { width: Math.round(width * density), height: Math.round(height * density) };
  const [wide, high] = [lineWidth * density, height * density];
  const options = { ...pen, height: high, query: scaled(query), key: scaled(key), reach: wide };
  const lines = collectLines(values, store.map.value, options);
  putPixels(canvas, ink(lines, store.lineInks.value, { ...size, lineWidth: wide }), size);
}

// What a hover changes at the tokens is written here, straight to the elements: with hundreds of tokens the virtual
// DOM would be slower than the drawing.

/** Tokens with less get no bar, unless all have little: then those with a tenth of the strongest do. */
const LEAST = 0.005;
/** A bar has full length at this weight at least, so that faint attention does not look strong. */
const FULL_BAR = 0.1;

export function tokenElements(root: ParentNode, side: Side): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>(`[data-side="${side}"]`)];
}

/** Marks the tokens that take no part: muted ones are struck through, filtered ones only pale. */
export function markHidden(elements: readonly HTMLElement[], shown: Uint8Array, mute: boolean): void {
  elements.forEach((element, token) => {
    const reason = shown[token] ? null : mute && element.hasAttribute("data-special") ? "muted" : "filtered";
    setAttribute(element, "data-hidden", reason);
    setAttribute(element, "aria-disabled", reason && "true");
  });
}

/** Marks the tokens in focus, those pinned on the other side, and the column whose other tokens fade. */
export function markFocus(root: HTMLElement, store: Store): void {
  const [focus, pins] = [store.focus.value, store.pins.value];
  setAttribute(root, "data-focus", focus ? focus.side : null);
  for (const element of root.querySelectorAll("[data-lit-self]")) {
    element.removeAttribute("data-lit-self");
    element.setAttribute("aria-selected", "false");
  }
  const mark = (side: Side, token: number, pinned: boolean) => {
    const element = root.querySelector(`[data-side="${side}"][data-token="${token}"]`);
    element?.setAttribute("data-lit-self", pinned ? "pin" : "hover");
    if (pinned) element?.setAttribute("aria-selected", "true");
  };
  for (const token of focus?.tokens ?? []) mark(focus?.side ?? "query", token, false);
  for (const side of ["query", "key"] as const) for (const token of pins[side]) mark(side, token, true);
}

/** Writes bar and number beside every visible token of the other side, and takes away those that were there. */
export function writeReadouts(
  root: HTMLElement,
  store: Store,
  geometry: Geometry,
  focus: Focus | null,
  attention: Float32Array | null,
) {
  const lit = new Set<HTMLElement>();
  if (focus && attention) {
    const side = otherSide(focus.side);
    const elements = root.querySelector(`[data-column="${side}"] .tokens`)?.children ?? [];
    const most = largest(attention);
    // What has no mass to share counts against the strongest.
    const [full, least] = store.values.value?.free
      ? [most, most / 50]
      : [Math.max(FULL_BAR, most), Math.min(LEAST, most / 10)];
    const [first, end] = visibleTokens(geometry[side], geometry.height);
    for (let token = first; token < end; token++) {
      if (most === 0 || Math.abs(attention[token]) < least) continue;
      const element = elements[token] as HTMLElement;
      writeReadout(element, store, attention, token, full);
      lit.add(element);
    }
  }
  for (const element of root.querySelectorAll<HTMLElement>("[data-lit]"))
    if (!lit.has(element)) element.removeAttribute("data-lit");
}

function writeReadout(element: HTMLElement, store: Store, attention: Float32Array, token: number, full: number): void {
  const [bar, number] = readoutElements(element);
  const { quantity, mapColor, dark } = store;
  const color = quantity.value.signed ? signColors(dark.value)[attention[token] < 0 ? 1 : 0] : mapColor.value;
  bar.style.setProperty("--length", `${(100 * Math.abs(attention[token])) / full}%`);
  bar.style.setProperty("--parts", `linear-gradient(${color} 0 0)`);
  const [text, beside] = store.numbers.value(attention[token], store.evenAttention.value[token]);
  number.textContent = text;
  setAttribute(number, "data-beside", store.focus.value && beside ? beside : null);
  element.setAttribute("data-lit", "");
}

/** The bar and the number of a token, made when first needed. */
function readoutElements(element: HTMLElement): [HTMLElement, HTMLElement] {
  const known = element.querySelectorAll<HTMLElement>(".bar, .number");
  if (known.length === 2) return [known[0], known[1]];
  const [bar, number] = [document.createElement("span"), document.createElement("span")];
  bar.className = "bar";
  number.className = "number";
  element.append(bar, number);
  return [bar, number];
}

function setAttribute(element: Element, attribute: string, value: string | null): void {
  if (element.getAttribute(attribute) === value) return;
  if (value === null) element.removeAttribute(attribute);
  else element.setAttribute(attribute, value);
}
