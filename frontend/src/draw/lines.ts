import type { Column, Focus } from "./columns";
import type { Mask } from "./mask";
import { codeOf, type LayerValues } from "./values";

/** Lines from query to key, colour by colour; heights in pixels from the top of the picture. */
export interface Lines {
  /**
   * Where the lines of each colour begin in the arrays, and their end: one colour, or for values of both signs one for
   * those above 0 and one for those below.
   */
  readonly offsets: Uint32Array;
  /** Height at the query. */
  readonly starts: Float32Array;
  /** How much lower the key is. */
  readonly rises: Float32Array;
  readonly strengths: Float32Array;
}

export interface LineOptions {
  readonly height: number;
  readonly query: Column;
  readonly key: Column;
  readonly mask: Mask;
  /** The smallest level drawn of each query, at least 1; more than 255 draws nothing. */
  readonly cutoffs: Uint16Array;
  /** How far a line reaches beyond its middle. */
  readonly reach: number;
  /** The strength of each value: gain * size ** gamma, size as part of the largest that the head can have. */
  readonly gain: number;
  readonly gamma: number;
  /** Only the lines of these tokens. */
  readonly only?: Focus | null;
}

/** The cutoffs that draw every value inside a mask, or every one whose level is not smaller. */
export function everyLine(mask: Mask, least = 1): Uint16Array {
  return Uint16Array.from(mask.query, (shown) => (shown ? least : 256));
}

/** How much a picture of lines shows. */
export interface Drawn {
  readonly lines: number;
  /** Sum of what is drawn, as parts of the largest value. */
  readonly mass: number;
  /** Part of all inside the mask that is drawn. */
  readonly part: number;
}

/** What is drawn of a head where the levels of each query begin at its cutoff. */
export function drawnOf(values: LayerValues, head: number, mask: Mask, cutoffs: Uint16Array): Drawn {
  const { levels, sizes } = codeOf(values);
  const bytes = values.bytes(head);
  let [lines, mass, all] = [0, 0, 0];
  for (let query = 0, at = 0; query < values.queries; query++) {
    for (let key = 0; key < values.keys; key++, at++) {
      const level = levels[bytes[at]];
      if (level === 0 || !mask.key[key] || !mask.query[query]) continue;
      all += sizes[level];
      if (level < cutoffs[query]) continue;
      lines++;
      mass += sizes[level];
    }
  }
  return { lines, mass, part: all > 0 ? mass / all : 0 };
}

/** The level from which on a line is drawn of what has no even share: an eighth of the largest. */
export function leastLevel(values: LayerValues): number {
  return Math.max(
    1,
    codeOf(values).sizes.findIndex((size) => size >= 1 / 8),
  );
}

/** The lines of a head that touch the picture. */
export function collectLines(values: LayerValues, head: number, options: LineOptions): Lines {
  const store: Growing = { starts: [], rises: [], strengths: [] };
  const code = codeOf(values);
  const strength = code.parts.map((value) => options.gain * Math.abs(value) ** options.gamma);
  const ends: number[] = [];
  for (const sign of code.signed ? [1, -1] : [1]) {
    const levels = code.parts.map((value, byte) => (sign * value > 0 ? code.levels[byte] : 0));
    collectHead(values, head, options, store, { levels, strength });
    ends.push(store.starts.length);
  }
  const [starts, rises, strengths] = [store.starts, store.rises, store.strengths].map((each) =>
    Float32Array.from(each),
  );
  return { offsets: Uint32Array.of(0, ...ends), starts, rises, strengths };
}

type Growing = Readonly<Record<Exclude<keyof Lines, "offsets">, number[]>>;

/** How the lines of one head are drawn. */
interface HeadPen {
  /** The level of each byte, 0 for those that are not drawn. */
  readonly levels: Float32Array;
  /** The strength of each byte. */
  readonly strength: Float32Array;
}

function collectHead(values: LayerValues, head: number, options: LineOptions, store: Growing, pen: HeadPen): void {
  const { query: from, mask, only, cutoffs } = options;
  const bytes = values.bytes(head);
  const { queries, keys } = values;
  const allowed =
    only?.side === "key" ? mask.key.map((shown, key) => (only.tokens.includes(key) ? shown : 0)) : mask.key;
  const someQueries = only?.side === "query" ? only.tokens : null;
  for (let at = 0; at < (someQueries?.length ?? queries); at++) {
    const query = someQueries ? someQueries[at] : at;
    if (cutoffs[query] > 255) continue;
    const start = from.top + (query + 0.5) * from.pitch;
    const row = bytes.subarray(query * keys, (query + 1) * keys);
    collectRow(row, start, cutoffs[query], allowed, options, store, pen);
  }
}

function collectRow(
  row: Uint8Array,
  start: number,
  cutoff: number,
  allowed: Uint8Array,
  { height, key: to, reach }: LineOptions,
  store: Growing,
  { levels, strength }: HeadPen,
): void {
  for (let key = 0; key < row.length; key++) {
    const byte = row[key];
    if (levels[byte] < cutoff || !allowed[key]) continue;
    const end = to.top + (key + 0.5) * to.pitch;
    if (Math.max(start, end) < -reach || Math.min(start, end) > height + reach) continue;
    store.starts.push(start);
    store.rises.push(end - start);
    store.strengths.push(strength[byte]);
  }
}
