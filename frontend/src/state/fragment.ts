import { FILTERS } from "../draw/mask";
import { type Selection, THEMES, VIEWS } from "./selection";

// A link keeps the parts of a selection that differ from the page's own, so that it opens the same picture.
const VERSION = "2";

/** How one part of a selection is written into a link and read back; reading gives undefined for nonsense. */
interface Part<Value> {
  write(value: Value): string;
  read(text: string): Value | undefined;
}

const PARTS: { readonly [Key in keyof Selection]: Part<Selection[Key]> } = {
  view: oneOf(VIEWS),
  stack: { write: (stack) => stack, read: (text) => text },
  layer: { write: String, read: readNumber },
  heads: { write: (heads) => heads?.join(",") ?? "all", read: readHeads },
  query: { write: (tokens) => tokens.join(","), read: readNumbers },
  key: { write: (tokens) => tokens.join(","), read: readNumbers },
  quantity: { write: (name) => name, read: (name) => (/^[a-z][a-z0-9-]*$/.test(name) ? name : undefined) },
  filter: oneOf(FILTERS),
  mute: { write: writeFlag, read: readFlag },
  sinks: { write: writeFlag, read: readFlag },
  share: { write: (share) => String(share ?? "auto"), read: (text) => (text === "auto" ? null : readNumber(text)) },
  label: { write: writeName, read: readName },
  least: { write: String, read: readNumber },
  sort: { write: writeName, read: readName },
  x: { write: writeName, read: readName },
  y: { write: writeName, read: readName },
  theme: oneOf(THEMES),
};

const KEYS = Object.keys(PARTS) as (keyof Selection)[];

/** The fragment of a link, without "#"; empty where nothing differs from the defaults. */
export function writeFragment(selection: Selection, defaults: Selection): string {
  const written = KEYS.map((key) => [key, writePart(selection, key)] as const);
  const changed = written.filter(([key, text]) => text !== writePart(defaults, key));
  if (changed.length === 0) return "";
  return [`v=${VERSION}`, ...changed.map(([key, text]) => `${key}=${encode(text)}`)].join("&");
}

/** The selection of a link; what it does not say, or says in a way that cannot be read, is as in the defaults. */
export function readFragment(fragment: string, defaults: Selection): Selection {
  const given = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
  if (given.get("v") !== VERSION) return defaults;
  const read = KEYS.flatMap((key) => {
    const text = given.get(key);
    const value = text === null ? undefined : PARTS[key].read(text);
    return value === undefined ? [] : [[key, value] as const];
  });
  return { ...defaults, ...Object.fromEntries(read) };
}

function writePart<Key extends keyof Selection>(selection: Selection, key: Key): string {
  return PARTS[key].write(selection[key]);
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",");
}

function oneOf<Word extends string>(words: readonly Word[]): Part<Word> {
  return { write: (word) => word, read: (text) => words.find((word) => word === text) };
}

function writeName(name: string | null): string {
  return name ?? "";
}

function readName(text: string): string | null {
  return text || null;
}

function writeFlag(flag: boolean): string {
  return flag ? "1" : "0";
}

function readFlag(text: string): boolean | undefined {
  return text === "1" ? true : text === "0" ? false : undefined;
}

function readNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function readNumbers(text: string): number[] | undefined {
  if (text === "") return [];
  return /^\d+(,\d+)*$/.test(text) ? text.split(",").map(Number) : undefined;
}

function readHeads(text: string): Selection["heads"] | undefined {
  return text === "all" ? null : text === "" ? undefined : readNumbers(text);
}
