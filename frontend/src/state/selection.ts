import type { Page, PageSelection, PageStack } from "../contract/page";
import { CHOICES, DEFAULTS, MOST_IN_TRAY, PLACES } from "../contract/values";
import type { Place, Side } from "../draw/columns";
import { isPair } from "../draw/mask";
import { drawingsOf, isDrawing, usualDrawing } from "./places";
import { quantitiesOf } from "./quantity";
import { fitTray, writeEntry } from "./tray";

export type View = PageSelection["view"];

/**
 * All that a picture depends on, besides the page. Every change is a new object.
 *
 * Heads are numbered as in the model, ascending; null stands for all.
 */
export type Selection = { readonly [Key in keyof PageSelection]: Frozen<PageSelection[Key]> };

type Frozen<Value> = Value extends (infer Item)[] ? readonly Item[] : Value;

type PlaceOption = keyof typeof PLACES;

export function pageSelection(page: Page): Selection {
  const selection = { ...page.selection, ...DEFAULTS, ...page.selection };
  return fitSelection(selection, page.beside?.[selection.shown_record] ?? page, page);
}

/** The nearest selection that this page can show; of a further record with the page that it stands beside. */
export function fitSelection(selection: Selection, page: Page, root = page): Selection {
  const stack = findStack(page, selection.stack);
  const tray = fitTray(selection.tray, root);
  const compared = selection.view === "compare" && tray.length === 0 ? "overview" : selection.view;
  const wanted = compared === "overview" && !stack.kinds ? "head" : compared;
  const view = isDrawing(wanted) && !drawingsOf(stack).includes(wanted) ? usualDrawing(stack) : wanted;
  const heads = selection.heads ?? [];
  // Heads are never drawn over each other: several stand side by side.
  if (isDrawing(view) && heads.length > 1) return severalHeads(selection, stack, page, root);
  return {
    ...selection,
    tray,
    stack: stack.name,
    layer: nearestLayer(stack, selection.layer),
    filter: isPair(stack) && CHOICES.filter.includes(selection.filter) ? selection.filter : "all",
    quantity: fitQuantity(selection.quantity, page),
    ...fitPlaces(selection, stack),
    view,
  };
}

function severalHeads(selection: Selection, stack: PageStack, page: Page, root: Page): Selection {
  const heads = stack.head_numbers.filter((head) => selection.heads?.includes(head));
  const lines = heads.slice(0, MOST_IN_TRAY).map((head) => writeEntry({ ...selection, heads: [head] }, page));
  const one = { ...selection, heads: heads.slice(0, 1) };
  return fitSelection(heads.length > 1 ? { ...one, view: "compare", tray: lines } : one, page, root);
}

export function findStack(page: Page, name: string): PageStack {
  return page.stacks.find((stack) => stack.name === name) ?? page.stacks[0];
}

export function chooseStack(selection: Selection, stack: string, page: Page): Selection {
  return stack === selection.stack ? selection : fitSelection({ ...selection, stack, query: [], key: [] }, page);
}

/** The next (+1) or previous (-1) layer that the stack has; the first and the last one stay. */
export function stepLayer(selection: Selection, step: number, stack: PageStack): Selection {
  const at = stack.layers.findIndex(({ layer }) => layer === selection.layer) + step;
  return at in stack.layers ? { ...selection, layer: stack.layers[at].layer } : selection;
}

/** One head of one layer. */
export function openHead(selection: Selection, layer: number, head: number, stack: PageStack): Selection {
  return { ...selection, layer, heads: fitHeads([head], stack) };
}

/** The one head that is chosen, as its thumbnail is numbered; null where it is not one. */
export function keptHead({ layer, heads }: Selection, stack: PageStack): number | null {
  const row = stack.layers.findIndex((of) => of.layer === layer);
  if (stack.heads === 1) return row;
  const column = heads?.length === 1 ? stack.head_numbers.indexOf(heads[0]) : -1;
  return column < 0 ? null : row * stack.heads + column;
}

/** Only this head of this layer, given as its thumbnail is numbered. */
export function keepHead(selection: Selection, at: number, stack: PageStack): Selection {
  const layer = stack.layers[Math.floor(at / stack.heads)].layer;
  return { ...selection, layer, heads: fitHeads([stack.head_numbers[at % stack.heads]], stack) };
}

/** A selection after the overview is left: the head that it showed is still shown. */
export function leaving(before: Selection, next: Selection, stack: PageStack, shown: number): Selection {
  const left =
    before.view === "overview" && !["overview", "compare"].includes(next.view) && next.stack === before.stack;
  if (!left || next.heads !== null || before.heads !== null || next.layer !== before.layer) return next;
  return keepHead(next, shown, stack);
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

/** The options that name heads or tokens, with what of it the stack has. */
function fitPlaces(selection: Selection, stack: PageStack): Pick<Selection, PlaceOption> {
  const fitted = Object.entries(PLACES).map(([name, of]) => [
    name,
    fitNumbers(selection[name as PlaceOption], of, stack),
  ]);
  return Object.fromEntries(fitted) as Pick<Selection, PlaceOption>;
}

function fitNumbers(wanted: Selection["heads"], of: string, stack: PageStack): Selection["heads"] {
  if (of === "heads" || !wanted) return fitHeads(wanted, stack);
  return fitTokens(wanted, stack[of as Side].labels.length);
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

/** What a reader moves little by little, and colours: no steps of their own to go back by. */
const CONTINUOUS: readonly (keyof Selection)[] = ["zoom", "theme"];

/** Whether a change is one that can be undone. */
export function isStep(before: Selection, next: Selection): boolean {
  const names = Object.keys(next) as (keyof Selection)[];
  return names.some((name) => !CONTINUOUS.includes(name) && String(before[name]) !== String(next[name]));
}
