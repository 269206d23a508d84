import type { Page, PageSelection, PageStack } from "../contract/page";
import { FILTERS, isPair } from "../draw/mask";
import type { Place, Side } from "../draw/place";
import { SHARES } from "../draw/share";
import { fitChoice } from "./evidence";
import { quantitiesOf } from "./quantity";

export const VIEWS = ["head", "model", "matrix", "text", "neuron", "pair", "scatter"] as const;
export const THEMES = ["auto", "light", "dark"] as const;

export type View = PageSelection["view"];
export type Theme = PageSelection["theme"];

/**
 * All that a picture depends on, besides the page. Every change is a new object.
 *
 * Heads are numbered as in the model, ascending; null stands for all.
 */
export type Selection = { readonly [Key in keyof PageSelection]: Frozen<PageSelection[Key]> };

type Frozen<Value> = Value extends number[] ? readonly number[] : Value;

/** What a page shows when Python chose nothing, beside its view and the first stack and layer. */
export const USUAL: Omit<PageSelection, "view" | "stack" | "layer"> = {
  heads: null,
  query: [],
  key: [],
  quantity: "weight",
  filter: "all",
  mute: false,
  sinks: true,
  share: null,
  label: null,
  least: 0,
  sort: null,
  x: null,
  y: null,
  theme: "auto",
};

export function pageSelection(page: Page): Selection {
  return fitSelection(page.selection, page);
}

/** The nearest selection that this page can show. */
export function fitSelection(selection: Selection, page: Page): Selection {
  const stack = findStack(page, selection.stack);
  return {
    ...selection,
    stack: stack.name,
    layer: nearestLayer(stack, selection.layer),
    heads: fitHeads(selection.heads, stack),
    filter: isPair(stack) && FILTERS.includes(selection.filter) ? selection.filter : "all",
    quantity: fitQuantity(selection.quantity, page),
    share: selection.share !== null && SHARES.includes(selection.share) ? selection.share : null,
    query: fitTokens(selection.query, stack.query.labels.length),
    key: fitTokens(selection.key, stack.key.labels.length),
    ...fitChoice(selection, page),
  };
}

export function findStack(page: Page, name: string): PageStack {
  return page.stacks.find((stack) => stack.name === name) ?? page.stacks[0];
}

/** Where the chosen heads stand among those that the page holds. */
export function chosenHeads(heads: Selection["heads"], { head_numbers: numbers }: PageStack): number[] {
  return [...numbers.keys()].filter((index) => heads === null || heads.includes(numbers[index]));
}

export function chooseStack(selection: Selection, stack: string, page: Page): Selection {
  return stack === selection.stack ? selection : fitSelection({ ...selection, stack, query: [], key: [] }, page);
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
export function toggleHead(selection: Selection, head: number, stack: PageStack): Selection {
  const heads = selection.heads ?? stack.head_numbers;
  const toggled = heads.includes(head) ? heads.filter((other) => other !== head) : [...heads, head];
  return { ...selection, heads: fitHeads(toggled.length > 0 ? toggled : heads, stack) };
}

/** Only this head; all heads again where it is the only one. */
export function soloHead(selection: Selection, head: number, stack: PageStack): Selection {
  const heads = selection.heads ?? stack.head_numbers;
  const alone = heads.length === 1 && heads[0] === head;
  return { ...selection, heads: alone ? null : fitHeads([head], stack) };
}

/** One head of one layer; or, to add, that head beside those of its layer that are chosen. */
export function openHead(selection: Selection, layer: number, head: number, stack: PageStack, add: boolean): Selection {
  if (add && layer === selection.layer) {
    return selection.heads === null ? { ...selection, heads: [head] } : toggleHead(selection, head, stack);
  }
  return { ...selection, layer, heads: fitHeads([head], stack) };
}

export function allHeads(selection: Selection): Selection {
  return { ...selection, heads: null };
}

/** Pins a token, or releases it where it is pinned; to add, beside those of its side that are pinned. */
export function togglePin(selection: Selection, { side, token }: Place, add = false): Selection {
  const pins = selection[side];
  if (!add) return { ...selection, [side]: pins.length === 1 && pins[0] === token ? [] : [token] };
  const toggled = pins.includes(token) ? pins.filter((other) => other !== token) : [...pins, token];
  return { ...selection, [side]: toggled.sort((a, b) => a - b) };
}

/** Pins exactly these tokens of both sides. */
export function pinPair(selection: Selection, pair: Record<Side, number>): Selection {
  return { ...selection, query: [pair.query], key: [pair.key] };
}

export function releasePins(selection: Selection): Selection {
  return { ...selection, query: [], key: [] };
}

/** The wanted quantity where some stack has it: another stack may show weights meanwhile. */
function fitQuantity(wanted: string, page: Page): string {
  const known = page.stacks.flatMap((stack) => quantitiesOf(page, stack));
  return known.find(({ name }) => name === wanted)?.name ?? "weight";
}

function nearestLayer(stack: PageStack, wanted: number): number {
  const numbers = stack.layers.map(({ layer }) => layer);
  return numbers.reduce((best, layer) => (Math.abs(layer - wanted) < Math.abs(best - wanted) ? layer : best));
}

function fitHeads(heads: Selection["heads"], { head_numbers: numbers }: PageStack): Selection["heads"] {
  if (heads === null) return null;
  const fit = numbers.filter((number) => heads.includes(number));
  return fit.length === 0 || fit.length === numbers.length ? null : fit;
}

function fitTokens(tokens: readonly number[], count: number): readonly number[] {
  return [...new Set(tokens)]
    .filter((token) => Number.isInteger(token) && token >= 0 && token < count)
    .sort((a, b) => a - b);
}
