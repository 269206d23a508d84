import { FILTERS } from "../draw/mask";
import { DIRECTIONS } from "./links";
import {
  KINDS,
  LAYOUTS,
  LINK_WORDS,
  MEASURES,
  NEURON_ORDERS,
  ORDERS,
  PINNED,
  type Selection,
  TEXT_DIRECTIONS,
  THEMES,
  TILES,
  VECTORS,
  VIEWS,
} from "./selection";

// A link keeps the parts of a selection that differ from the page's own, so that it opens the same picture.
const VERSION = "2";

/** How one part of a selection is written into a link and read back; reading gives undefined for nonsense. */
interface Part<Value> {
  write(value: Value): string;
  read(text: string): Value | undefined;
}

const FLAG: Part<boolean> = {
  write: (flag) => (flag ? "1" : "0"),
  read: (text) => (text === "1" ? true : text === "0" ? false : undefined),
};

const PARTS: { readonly [Key in keyof Selection]: Part<Selection[Key]> } = {
  view: oneOf(VIEWS),
  stack: { write: (stack) => stack, read: (text) => text },
  layer: { write: String, read: readNumber },
  heads: { write: (heads) => heads?.join(",") ?? "all", read: readHeads },
  query: { write: (tokens) => tokens.join(","), read: readNumbers },
  key: { write: (tokens) => tokens.join(","), read: readNumbers },
  pinned: oneOf(PINNED),
  words: FLAG,
  mean_layers: { write: (layers) => layers.join(","), read: readNumbers },
  quantity: { write: (name) => name, read: (name) => (/^[a-z][a-z0-9-]*$/.test(name) ? name : undefined) },
  filter: oneOf(FILTERS),
  hide_special: FLAG,
  sinks: FLAG,
  top_percent: {
    write: (share) => String(share ?? "auto"),
    read: (text) => (text === "auto" ? null : readNumber(text)),
  },
  order: oneOf(ORDERS),
  kind: { write: writeName, read: (text) => KINDS.find((kind) => kind === text) ?? null },
  measure: oneOf(MEASURES),
  layout: oneOf(LAYOUTS),
  label: { write: writeName, read: readName },
  min_score: { write: String, read: readNumber },
  sort: { write: writeName, read: readName },
  x: { write: writeName, read: readName },
  y: { write: writeName, read: readName },
  tiles: oneOf(TILES),
  direction: oneOf(TEXT_DIRECTIONS),
  neurons: oneOf(NEURON_ORDERS),
  vector: oneOf(VECTORS),
  zoom: { write: (zoom) => zoom?.join(",") ?? "all", read: readZoom },
  stretch: FLAG,
  per_head: FLAG,
  link_direction: oneOf(DIRECTIONS),
  link_words: oneOf(LINK_WORDS),
  // No line has a semicolon or a tilde of its own: these need no escapes in an address.
  tray: {
    write: (tray) => tray.join(";").replaceAll(" ", "~"),
    read: (text) => (text ? text.replaceAll("~", " ").split(";") : []),
  },
  linked: FLAG,
  shown_record: { write: String, read: String },
  theme: oneOf(THEMES),
};

/** What parts were called in links of the version before; they are read until 0.3. */
const BEFORE: Readonly<Record<string, string>> = { hide_special: "mute", top_percent: "share", min_score: "least" };

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
    const text = given.get(key) ?? given.get(BEFORE[key]);
    const value = text === null ? undefined : PARTS[key].read(text);
    return value === undefined ? [] : [[key, value] as const];
  });
  return { ...defaults, ...Object.fromEntries(read) };
}

function writePart<Key extends keyof Selection>(selection: Selection, key: Key): string {
  return PARTS[key].write(selection[key]);
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3B", ";").replaceAll("%3D", "=");
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

function readNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function readNumbers(text: string): number[] | undefined {
  if (text === "") return [];
  return /^\d+(,\d+)*$/.test(text) ? text.split(",").map(Number) : undefined;
}

/** First query, first key and how many keys are seen; null for all of the matrix. */
function readZoom(text: string): Selection["zoom"] | undefined {
  if (text === "all") return null;
  const numbers = text.split(",").map(Number);
  const fit =
    numbers.length === 3 && numbers[2] > 0 && numbers.every((number) => number >= 0 && Number.isFinite(number));
  return fit ? numbers : undefined;
}

function readHeads(text: string): Selection["heads"] | undefined {
  return text === "all" ? null : text === "" ? undefined : readNumbers(text);
}
