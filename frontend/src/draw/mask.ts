import type { PageSelection, PageStack, PageTokens } from "../contract/page";

/** Which tokens take part, 1 or 0 for each query and key; a line is drawn where both its ends do. */
export interface Mask {
  readonly query: Uint8Array;
  readonly key: Uint8Array;
}

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

/** The mask that hides nothing. */
export function everyToken({ query, key }: PageStack): Mask {
  return { query: inText(query, ""), key: inText(key, "") };
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

/** The mask without some keys. */
export function withoutSinks(mask: Mask, sinks: readonly number[]): Mask {
  return { ...mask, key: mask.key.map((shown, token) => (sinks.includes(token) ? 0 : shown)) };
}
