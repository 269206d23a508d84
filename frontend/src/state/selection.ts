import * as values from "../../contract/values";
import type { Page, PageSelection, PageStack } from "../../types/page";
import { isPair, type Place, type Side } from "../draw/tokens";
import { quantitiesOf } from "./quantity";
import { decoded } from "./words";

// Three places: all heads, one head in one of four drawings, and several heads side by side.

export const DRAWINGS = ["head", "matrix", "text", "neuron"] as const;
export type Drawing = (typeof DRAWINGS)[number];

/** From so many queries on lines cannot be told apart. */
export const FEW_QUERIES = 64;

export function isDrawing(view: View): view is Drawing {
  return (DRAWINGS as readonly string[]).includes(view);
}

/** The drawings of one head that a stack has: neurons only with queries and keys, a long text by sentences. */
export function drawingsOf({ layers, sentences }: PageStack): readonly Drawing[] {
  if (sentences) return ["matrix", "text"];
  const neurons = layers.some(({ scores, later, has }) => scores !== null || (later && has?.includes("score")));
  return neurons ? DRAWINGS : DRAWINGS.filter((drawing) => drawing !== "neuron");
}

/** How one head is drawn where nobody has chosen: the input decides. */
export function usualDrawing({ query, key, sentences }: PageStack): Drawing {
  if (query.areas && key.areas) return "text";
  // What of one text belongs to what of another is read from a table.
  if (!isOneText({ query, key }) && !query.areas && !key.areas) return "matrix";
  return query.labels.length < FEW_QUERIES && !sentences ? "head" : "matrix";
}

/** Whether queries and keys are the same tokens: no cross-attention. */
export function isOneText({ query, key }: Pick<PageStack, "query" | "key">): boolean {
  return query.pieces.length === key.pieces.length && query.pieces.every((piece, token) => piece === key.pieces[token]);
}

export type View = PageSelection["view"];

/**
 * All that a picture depends on, besides the page. Every change is a new object.
 *
 * Heads are numbered as in the model, ascending; null stands for all.
 */
export type Selection = { readonly [Key in keyof PageSelection]: Frozen<PageSelection[Key]> };

type Frozen<Value> = Value extends (infer Item)[] ? readonly Item[] : Value;

export function pageSelection(page: Page): Selection {
  const selection = { ...page.selection, ...values.DEFAULTS, ...page.selection };
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
  const [layers, wantedLayer] = [stack.layers.map(({ layer }) => layer), selection.layer];
  // The wanted quantity where some stack has it: another stack may show weights meanwhile.
  const known = page.stacks.flatMap((each) => quantitiesOf(page, each));
  // Heads are never drawn over each other: several stand side by side.
  if (isDrawing(view) && heads.length > 1) return severalHeads(selection, stack, page, root);
  return {
    ...selection,
    tray,
    stack: stack.name,
    layer: layers.reduce((best, layer) =>
      Math.abs(layer - wantedLayer) < Math.abs(best - wantedLayer) ? layer : best,
    ),
    filter: isPair(stack) && values.CHOICES.filter.includes(selection.filter) ? selection.filter : "all",
    quantity: known.find(({ name }) => name === selection.quantity)?.name ?? "weight",
    heads: fitHeads(selection.heads, stack),
    query: fitTokens(selection.query, stack.query.labels.length),
    key: fitTokens(selection.key, stack.key.labels.length),
    view,
  };
}

function severalHeads(selection: Selection, stack: PageStack, page: Page, root: Page): Selection {
  const heads = stack.head_numbers.filter((head) => selection.heads?.includes(head));
  const lines = heads.slice(0, values.MOST_IN_TRAY).map((head) => writeEntry({ ...selection, heads: [head] }, page));
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

export function fitHeads(heads: Selection["heads"], { head_numbers: numbers }: PageStack): Selection["heads"] {
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

/**
 * A selection of one record as it is in another of an edited text: pins follow their tokens.
 *
 * What stands before the edit keeps its place, what stands after it moves with the end, and what was edited is let go.
 */
export function movedPins(selection: Selection, before: Page, after: Page): Selection {
  const [old, next] = [findStack(before, selection.stack), findStack(after, selection.stack)];
  return {
    ...selection,
    query: selection.query.flatMap(follower(old.query.pieces, next.query.pieces)),
    key: selection.key.flatMap(follower(old.key.pieces, next.key.pieces)),
  };
}

/** Where a token of a text is in the edited text: one place, or none. */
export function follower(before: readonly string[], after: readonly string[]): (token: number) => number[] {
  const shorter = Math.min(before.length, after.length);
  let kept = 0;
  while (kept < shorter && before[kept] === after[kept]) kept++;
  const shift = after.length - before.length;
  let end = before.length;
  while (end > kept && end + shift > kept && before[end - 1] === after[end + shift - 1]) end--;
  return (token) => {
    if (token < kept) return [token];
    return token >= end && token < before.length ? [token + shift] : [];
  };
}

// The compare tray: each picture is one line, as Python writes it: layer and heads, and what is not as usual.

/** What a line leaves out, in the order in which it names the rest. */
const LEFT_OUT: Readonly<Record<string, unknown>> = {
  view: "head",
  stack: "",
  ...Object.fromEntries(values.PICTURE_OPTIONS.map((name) => [name, values.DEFAULTS[name]])),
};
type Name = "view" | "stack" | (typeof values.PICTURE_OPTIONS)[number];
const NAMES = Object.keys(LEFT_OUT) as Name[];

/** The name of the further record that a line shows; empty for the page's own. */
export function recordOf(line: string): string {
  return / record=(\S+)/.exec(line)?.[1] ?? "";
}

/** The page of the record that a line shows; undefined where there is none. */
export function pageOf(line: string, page: Page): Page | undefined {
  const name = recordOf(line);
  return name ? Object.entries(page.beside ?? {}).find(([known]) => known === name)?.[1] : page;
}

/** What tells a record from the others of a page: its model, its text, or else its name. */
export function recordWords(page: Page, name: string): string {
  const own = page.beside?.[name] ?? page;
  const all = [page, ...Object.values(page.beside ?? {})];
  const differ = (of: (page: Page) => string) => (new Set(all.map(of)).size > 1 ? of(own) : "");
  return [differ(({ model }) => model.name), differ(({ title }) => title)].filter(Boolean).join(" · ") || name;
}

/** A line, of each record of a page that has such a layer and heads. */
export function ofEveryRecord(line: string, page: Page): string[] {
  const own = line.replace(/ record=\S+/, "");
  const others = Object.keys(page.beside ?? {}).map((name) => own.replace(/^\S+/, `$& record=${name}`));
  return [own, ...others].filter((other) => isThere(other, page));
}

function isThere(line: string, page: Page): boolean {
  const entry = readEntry(line, page);
  const stack = pageOf(line, page)?.stacks.find(({ name }) => name === entry?.stack);
  const layer = stack?.layers.some(({ layer }) => layer === entry?.layer);
  return layer === true && (entry?.heads ?? []).every((head) => stack?.head_numbers.includes(head));
}

/** The line of what is shown, of a page, or of a further record of one. */
export function writeEntry(selection: Selection, { stacks }: Page, record = ""): string {
  const { layer, heads } = selection;
  const place = heads ? `${layer}-${heads.join()}` : String(layer);
  const given = { ...selection, stack: selection.stack === stacks[0].name ? "" : selection.stack };
  const rest = NAMES.filter((name) => written(name, given[name]) !== written(name, LEFT_OUT[name]));
  const words = rest.map((name) => `${name}=${written(name, given[name])}`);
  return [place, ...(record ? [`record=${record}`] : []), ...words].join(" ");
}

/** What a line shows; null where it is none. Nonsense in it is left out, and what the page has not is fitted later. */
export function readEntry(line: string, page: Page): Partial<Selection> | null {
  const [place, ...words] = line.split(" ");
  const found = /^(\d+)(?:-(\d+(?:,\d+)*))?$/.exec(place);
  const of = pageOf(line, page);
  if (!found || !of) return null;
  const entry: Record<string, unknown> = { ...LEFT_OUT, stack: of.stacks[0].name };
  for (const word of words) {
    const [name, text] = word.split("=");
    const value = Object.hasOwn(LEFT_OUT, name) ? readPart(name as Name, decoded(text ?? "")) : undefined;
    if (value !== undefined) entry[name] = value;
  }
  if (!values.VIEWS_WITH.picture.includes(entry.view as Selection["view"])) entry.view = "head";
  return { ...entry, layer: Number(found[1]), heads: found[2]?.split(",").map(Number) ?? null };
}

/** The lines that can be read, each once, as many as a tray holds. */
export function fitTray(tray: readonly string[], page: Page): readonly string[] {
  const lines = tray.flatMap((line) => {
    const heads = readEntry(line, page)?.heads;
    if (heads === undefined) return [];
    // Heads are never drawn over each other: each has a picture of its own.
    return heads && heads.length > 1 ? heads.map((head) => line.replace(/-[\d,]+/, `-${head}`)) : [line];
  });
  return [...new Set(lines)].slice(0, values.MOST_IN_TRAY);
}

/** What stands behind the name of an option: no line has a space or a tilde of its own. */
function written(name: Name, value: unknown): string {
  return encodeURIComponent(writePart(name, value)).replaceAll("%2C", ",").replaceAll("~", "%7E");
}

// A link keeps the parts of a selection that differ from the page's own, so that it opens the same picture.
const VERSION = "2";

const KEYS = ["view", "stack", "layer", ...Object.keys(values.DEFAULTS)] as (keyof Selection)[];

/** A part of a selection as a link holds it. */
function writePart(key: keyof Selection, value: unknown): string {
  // No line has a semicolon or a tilde of its own: these need no escapes in an address.
  if (key === "tray") return (value as string[]).join(";").replaceAll(" ", "~");
  if (typeof value === "boolean") return value ? "1" : "0";
  return String(value ?? (key === "kind" ? "" : "all"));
}

/** The same read back; undefined for nonsense. */
function readPart(key: keyof Selection, text: string): unknown {
  const usual = (values.DEFAULTS as Readonly<Record<string, unknown>>)[key];
  const words = (values.CHOICES as Readonly<Record<string, readonly string[]>>)[key];
  if (words) return words.find((word) => word === text) ?? (usual === null ? null : undefined);
  if (key === "tray") return text ? text.replaceAll("~", " ").split(";") : [];
  if (key === "quantity") return /^[a-z][a-z0-9-]*$/.test(text) ? text : undefined;
  if (typeof usual === "boolean") return ["0", "1"].includes(text) ? text === "1" : undefined;
  return key === "stack" || typeof usual === "string" ? text : readNumbers(key, text);
}

const NUMBERS = /^(\d+(\.\d+)?(,\d+(\.\d+)?)*)?$/;

function readNumbers(key: string, text: string): number | readonly number[] | null | undefined {
  if (text === "all" && (key === "heads" || key === "zoom")) return null;
  const numbers = text ? text.split(",").map(Number) : [];
  // A zoom is the first query, the first key and how many keys are seen.
  const fits = { heads: numbers.length > 0, zoom: numbers.length === 3 && numbers[2] > 0, layer: numbers.length === 1 };
  const whole = key === "zoom" || numbers.every(Number.isInteger);
  if (!NUMBERS.test(text) || !whole || fits[key as "heads"] === false) return undefined;
  return key === "layer" ? numbers[0] : numbers;
}

/** The fragment of a link, without "#"; empty where nothing differs from the defaults. */
export function writeFragment(selection: Selection, defaults: Selection): string {
  const written = KEYS.map((key) => [key, writePart(key, selection[key])] as const);
  const changed = written.filter(([key, text]) => text !== writePart(key, defaults[key]));
  if (changed.length === 0) return "";
  return [`v=${VERSION}`, ...changed.map(([key, text]) => `${key}=${encode(text)}`)].join("&");
}

/** The selection of a link; what it does not say, or says in a way that cannot be read, is as in the defaults. */
export function readFragment(fragment: string, defaults: Selection): Selection {
  const given = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
  if (given.get("v") !== VERSION) return defaults;
  const moved = values.MOVED_VIEWS[given.get("view") ?? ""];
  const read = KEYS.flatMap((key) => {
    const text = given.get(key);
    const value = text === null ? undefined : readPart(key, text);
    return value === undefined ? [] : [[key, value] as const];
  });
  return { ...defaults, ...Object.fromEntries(read), ...moved };
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3B", ";").replaceAll("%3D", "=");
}
