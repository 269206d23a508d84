import { FILTERS, type Filter } from "../draw/mask";
import type { Place } from "../draw/place";
import type { Selection, Theme } from "./selection";

// A link keeps the parts of a selection that differ from the page's own, so that it opens the same picture.
const VERSION = "1";

/** How one part of a selection is written into a link and read back; reading gives undefined for nonsense. */
interface Part<Value> {
  write(value: Value): string;
  read(text: string): Value | undefined;
}

const PARTS: { readonly [Key in keyof Selection]: Part<Selection[Key]> } = {
  stack: { write: (stack) => stack, read: (text) => text },
  layer: { write: String, read: readNumber },
  heads: { write: (heads) => heads?.join(",") ?? "all", read: readHeads },
  filter: { write: (filter) => filter, read: (text) => FILTERS.find((filter): filter is Filter => filter === text) },
  mute: { write: (mute) => (mute ? "1" : "0"), read: (text) => ({ 0: false, 1: true })[text] },
  share: { write: (share) => String(share ?? "auto"), read: (text) => (text === "auto" ? null : readNumber(text)) },
  pin: { write: (pin) => (pin ? `${pin.side}-${pin.token}` : "none"), read: readPin },
  theme: { write: (theme) => theme, read: (text) => (["auto", "light", "dark"] as Theme[]).find((it) => it === text) },
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

function readNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function readHeads(text: string): Selection["heads"] | undefined {
  if (text === "all") return null;
  return /^\d+(,\d+)*$/.test(text) ? text.split(",").map(Number) : undefined;
}

function readPin(text: string): Place | null | undefined {
  if (text === "none") return null;
  const match = /^(query|key)-(\d+)$/.exec(text);
  return match ? { side: match[1] as Place["side"], token: Number(match[2]) } : undefined;
}
