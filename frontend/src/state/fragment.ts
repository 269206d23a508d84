import { CHOICES, DEFAULTS, MOVED_VIEWS, NUMBERS } from "../contract/values";
import type { Selection } from "./selection";

// A link keeps the parts of a selection that differ from the page's own, so that it opens the same picture.
const VERSION = "2";

/** How one part of a selection is written into a link and read back; reading gives undefined for nonsense. */
interface Part {
  write(value: unknown): string;
  read(text: string): unknown;
}

const FLAG: Part = {
  write: (flag) => (flag ? "1" : "0"),
  read: (text) => (text === "1" ? true : text === "0" ? false : undefined),
};
const LIST: Part = { write: String, read: readNumbers };
const TEXT: Part = { write: String, read: String };
const NAME: Part = { write: (name) => String(name ?? ""), read: (text) => text || null };

/** Parts that their type does not say all of. */
const SPECIAL: Readonly<Record<string, Part>> = {
  heads: { write: (heads) => String(heads ?? "all"), read: (text) => (text === "all" ? null : readSome(text)) },
  quantity: { write: String, read: (name) => (/^[a-z][a-z0-9-]*$/.test(name) ? name : undefined) },
  zoom: { write: (zoom) => String(zoom ?? "all"), read: readZoom },
  // No line has a semicolon or a tilde of its own: these need no escapes in an address.
  tray: {
    write: (tray) => (tray as string[]).join(";").replaceAll(" ", "~"),
    read: (text) => (text ? text.replaceAll("~", " ").split(";") : []),
  },
};

const KEYS = ["view", "stack", "layer", ...Object.keys(DEFAULTS)] as (keyof Selection)[];

/** Each part of a selection as its type is written. */
const PARTS = Object.fromEntries(KEYS.map((key) => [key, SPECIAL[key] ?? partOf(key)]));

function partOf(key: string): Part {
  const usual = (DEFAULTS as Readonly<Record<string, unknown>>)[key];
  const words = (CHOICES as Readonly<Record<string, readonly string[]>>)[key];
  if (words) return oneOf(words, usual);
  if (typeof usual === "boolean") return FLAG;
  if (Array.isArray(usual)) return LIST;
  if ((NUMBERS as readonly string[]).includes(key)) return oneNumber(usual);
  return usual === null ? NAME : TEXT;
}

/** The fragment of a link, without "#"; empty where nothing differs from the defaults. */
export function writeFragment(selection: Selection, defaults: Selection): string {
  const written = KEYS.map((key) => [key, PARTS[key].write(selection[key])] as const);
  const changed = written.filter(([key, text]) => text !== PARTS[key].write(defaults[key]));
  if (changed.length === 0) return "";
  return [`v=${VERSION}`, ...changed.map(([key, text]) => `${key}=${encode(text)}`)].join("&");
}

/** The selection of a link; what it does not say, or says in a way that cannot be read, is as in the defaults. */
export function readFragment(fragment: string, defaults: Selection): Selection {
  const given = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
  if (given.get("v") !== VERSION) return defaults;
  const moved = MOVED_VIEWS[given.get("view") ?? ""];
  const read = KEYS.flatMap((key) => {
    const text = given.get(key);
    const value = text === null ? undefined : PARTS[key].read(text);
    return value === undefined ? [] : [[key, value] as const];
  });
  return { ...defaults, ...Object.fromEntries(read), ...moved };
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3B", ";").replaceAll("%3D", "=");
}

/** One of some words; where none is the default, it is what any other text is. */
function oneOf(words: readonly string[], usual: unknown): Part {
  return { ...NAME, read: (text) => words.find((word) => word === text) ?? (usual === null ? null : undefined) };
}

/** A whole number; where none is the default, it is written as "auto". */
function oneNumber(usual: unknown): Part {
  return {
    write: (number) => String(number ?? "auto"),
    read: (text) => (text === "auto" && usual === null ? null : readNumber(text)),
  };
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

function readSome(text: string): number[] | undefined {
  return text === "" ? undefined : readNumbers(text);
}
