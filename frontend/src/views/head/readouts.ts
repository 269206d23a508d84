import { type Focus, otherSide, type Side, visibleTokens } from "../../draw/columns";
import { signColors } from "../../draw/palette";
import { largest } from "../../draw/values";
import type { Store } from "../../state/store";
import type { Geometry } from "./geometry";

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
    const { full, least } = barScale(most, store.values.value?.free);
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

/** What has a full bar and what has none; what has no mass to share counts against the strongest. */
function barScale(most: number, free = false) {
  if (free) return { full: most, least: most / 50 };
  return { full: Math.max(FULL_BAR, most), least: Math.min(LEAST, most / 10) };
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
