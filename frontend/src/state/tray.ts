import type { Page } from "../contract/page";
import { DEFAULTS, MOST_IN_TRAY, NUMBERS, PICTURE_OPTIONS, VIEWS_WITH } from "../contract/values";
import type { Selection } from "./selection";

// The compare tray: each picture is one line, as Python writes it: layer and heads, and what is not as usual.

/** What a line leaves out, in the order in which it names the rest. */
const LEFT_OUT: Readonly<Record<string, unknown>> = {
  view: "head",
  stack: "",
  ...Object.fromEntries(PICTURE_OPTIONS.map((name) => [name, DEFAULTS[name]])),
};
type Name = "view" | "stack" | (typeof PICTURE_OPTIONS)[number];
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
  const rest = NAMES.filter((name) => textOf(given[name]) !== textOf(LEFT_OUT[name] as Selection[Name]));
  return [place, ...(record ? [`record=${record}`] : []), ...rest.map((name) => `${name}=${textOf(given[name])}`)].join(
    " ",
  );
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
    if (text !== undefined && Object.hasOwn(LEFT_OUT, name)) entry[name] = valueIn(name as Name, text);
  }
  if (!VIEWS_WITH.picture.includes(entry.view as Selection["view"])) entry.view = "head";
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
  return [...new Set(lines)].slice(0, MOST_IN_TRAY);
}

/** The picture in another place, from 0. */
export function movedTo(tray: readonly string[], from: number, to: number): readonly string[] {
  const rest = tray.filter((_, at) => at !== from);
  const place = Math.max(0, Math.min(rest.length, to));
  return [...rest.slice(0, place), tray[from], ...rest.slice(place)];
}

function textOf(value: Selection[Name]): string {
  if (typeof value === "boolean") return value ? "1" : "0";
  return typeof value === "object" ? (value?.join() ?? "") : encodeURIComponent(value).replaceAll("~", "%7E");
}

function valueIn(name: Name, text: string): unknown {
  const usual = LEFT_OUT[name];
  if (typeof usual === "boolean") return text === "1";
  if (Array.isArray(usual)) return /^\d+(,\d+)*$/.test(text) ? text.split(",").map(Number) : usual;
  if ((NUMBERS as readonly string[]).includes(name)) return /^\d+$/.test(text) ? Number(text) : null;
  try {
    return decodeURIComponent(text);
  } catch {
    return usual;
  }
}
