import type { PageSelection, PageStack, PageTokens } from "../../types/page";

/** One token column: where its tokens stand in the picture, in pixels. */
export interface Column {
  readonly tokens: number;
  /** Height of one token. */
  readonly pitch: number;
  /** Where the column begins, counted from the top of the picture; negative when scrolled. */
  readonly top: number;
}

const WIDEST_PITCH = 44;
const NARROWEST_PITCH = 18;

/** Height of one token, so that the longer column fits the height where it can. */
export function pitchFor(tokens: number, height: number, narrowest = NARROWEST_PITCH): number {
  return Math.min(WIDEST_PITCH, Math.max(narrowest, Math.floor(height / tokens)));
}

/**
 * Where a column begins when the longest one is scrolled.
 *
 * A column that fits the picture stands in its middle. One that does not moves so that all columns reach their ends
 * together, however different their lengths.
 */
export function columnTop(height: number, longest: number, picture: number, scroll: number): number {
  if (height <= picture) return (picture - height) / 2;
  return (-scroll * (height - picture)) / (longest - picture);
}

/** The scroll position that brings a token into the picture, with some room around it. */
export function scrollTo(token: number, column: Column, longest: number, picture: number, scroll: number): number {
  const height = column.tokens * column.pitch;
  if (height <= picture) return scroll;
  const room = 2 * column.pitch;
  const middle = column.top + (token + 0.5) * column.pitch;
  const missing = middle < room ? middle - room : Math.max(0, middle - (picture - room));
  const wanted = scroll + (missing * (longest - picture)) / (height - picture);
  return Math.min(longest - picture, Math.max(0, wanted));
}

/** First token and end (exclusive) of those that can be seen in the picture. */
export function visibleTokens({ tokens, pitch, top }: Column, picture: number): [number, number] {
  return [Math.max(0, Math.floor(-top / pitch)), Math.min(tokens, Math.ceil((picture - top) / pitch))];
}

export type Side = "query" | "key";

/** One token of one column. */
export type Place = { readonly side: Side; readonly token: number };

/** The tokens of one side whose attention is followed. */
export type Focus = { readonly side: Side; readonly tokens: readonly number[] };

export function otherSide(side: Side): Side {
  return side === "query" ? "key" : "query";
}

/** Which tokens take part, 1 or 0 for each query and key; a line is drawn where both its ends do. */
export type Mask = { readonly query: Uint8Array; readonly key: Uint8Array };

/** Which text of a pair the queries and the keys come from: a for the first, b for the second. */
export type Filter = PageSelection["filter"];

export function isPair({ query, key }: PageStack): boolean {
  return new Set(query.segments).size === 2 && new Set(key.segments).size === 2;
}

export function hasSpecial({ query, key }: PageStack): boolean {
  return query.special.includes(true) || key.special.includes(true);
}

export function filterMask({ query, key }: PageStack, filter: Filter): Mask {
  const [from, to] = filter === "all" ? ["", ""] : [filter[0], filter[1]];
  return { query: inText(query, from), key: inText(key, to) };
}

/** The mask without special tokens. */
export function muteSpecial(mask: Mask, { query, key }: PageStack): Mask {
  return {
    query: mask.query.map((shown, token) => (query.special[token] ? 0 : shown)),
    key: mask.key.map((shown, token) => (key.special[token] ? 0 : shown)),
  };
}

function inText({ segments }: PageTokens, text: string): Uint8Array {
  return Uint8Array.from(segments, (segment) => (text === "" || (segment === 0) === (text === "a") ? 1 : 0));
}
