import type { Page, PageStack } from "../contract/page";
import { FILTERS, type Filter, isPair } from "../draw/mask";
import type { Place } from "../draw/place";
import { SHARES } from "../draw/share";

export type Theme = "auto" | "light" | "dark";

/** All that a picture depends on, besides the page. Every change is a new object. */
export interface Selection {
  readonly stack: string;
  /** Number of the layer in the model. */
  readonly layer: number;
  /** The heads that are on, ascending; null for all. */
  readonly heads: readonly number[] | null;
  readonly filter: Filter;
  /** Special tokens take no part. */
  readonly mute: boolean;
  /** Percent of each row's mass that is drawn, one of SHARES; null for as much as is affordable. */
  readonly share: number | null;
  readonly pin: Place | null;
  readonly theme: Theme;
}

export function pageSelection(page: Page): Selection {
  const { stack, layer, heads, theme } = page.selection;
  return fitSelection({ stack, layer, heads, theme, filter: "all", mute: false, share: null, pin: null }, page);
}

/** The nearest selection that this page can show. */
export function fitSelection(selection: Selection, page: Page): Selection {
  const stack = findStack(page, selection.stack);
  return {
    ...selection,
    stack: stack.name,
    layer: nearestLayer(stack, selection.layer),
    heads: fitHeads(selection.heads, stack.heads),
    filter: isPair(stack) && FILTERS.includes(selection.filter) ? selection.filter : "all",
    share: selection.share !== null && SHARES.includes(selection.share) ? selection.share : null,
    pin: fitPin(selection.pin, stack),
  };
}

export function findStack(page: Page, name: string): PageStack {
  return page.stacks.find((stack) => stack.name === name) ?? page.stacks[0];
}

/** The chosen heads as numbers. */
export function chosenHeads(heads: Selection["heads"], count: number): number[] {
  return heads ? [...heads] : Array.from({ length: count }, (_, head) => head);
}

export function chooseStack(selection: Selection, stack: string, page: Page): Selection {
  return stack === selection.stack ? selection : fitSelection({ ...selection, stack, pin: null }, page);
}

export function chooseLayer(selection: Selection, layer: number): Selection {
  return { ...selection, layer };
}

/** The next (+1) or previous (-1) layer that the stack has; the first and the last one stay. */
export function stepLayer(selection: Selection, step: number, stack: PageStack): Selection {
  const at = stack.layers.findIndex(({ layer }) => layer === selection.layer) + step;
  return at in stack.layers ? chooseLayer(selection, stack.layers[at].layer) : selection;
}

/** Switches one head on or off; the last one stays on. */
export function toggleHead(selection: Selection, head: number, count: number): Selection {
  const heads = chosenHeads(selection.heads, count);
  const toggled = heads.includes(head) ? heads.filter((other) => other !== head) : [...heads, head];
  return { ...selection, heads: fitHeads(toggled.length > 0 ? toggled : heads, count) };
}

/** Only this head; all heads again where it is the only one. */
export function soloHead(selection: Selection, head: number, count: number): Selection {
  const heads = chosenHeads(selection.heads, count);
  const alone = heads.length === 1 && heads[0] === head;
  return { ...selection, heads: alone ? null : fitHeads([head], count) };
}

export function allHeads(selection: Selection): Selection {
  return { ...selection, heads: null };
}

/** Pins a token, or releases it where it is the pinned one. */
export function togglePin(selection: Selection, place: Place): Selection {
  const { pin } = selection;
  const pinned = pin?.side === place.side && pin.token === place.token;
  return { ...selection, pin: pinned ? null : place };
}

function nearestLayer(stack: PageStack, wanted: number): number {
  const numbers = stack.layers.map(({ layer }) => layer);
  return numbers.reduce((best, layer) => (Math.abs(layer - wanted) < Math.abs(best - wanted) ? layer : best));
}

function fitHeads(heads: Selection["heads"], count: number): Selection["heads"] {
  if (heads === null) return null;
  const fit = [...new Set(heads)].filter((head) => Number.isInteger(head) && head >= 0 && head < count);
  return fit.length === 0 || fit.length === count ? null : fit.sort((a, b) => a - b);
}

function fitPin(pin: Place | null, stack: PageStack): Place | null {
  return pin && pin.token < stack[pin.side].labels.length ? pin : null;
}
