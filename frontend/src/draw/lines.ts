import type { Column } from "./columns";
import type { Mask } from "./mask";
import type { Focus } from "./place";
import { type LayerWeights, WEIGHT } from "./weights";

/** Lines from query to key, head by head; heights in pixels from the top of the picture. */
export interface Lines {
  /** Where each head's lines begin in the arrays; one entry more than heads. */
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
  /** For each of the heads: the smallest byte drawn of each query, at least 1; more than 255 draws nothing. */
  readonly cutoffs: readonly Uint16Array[];
  /** Height over which the heads are spread at each token, so that their colours do not pile up on one point. */
  readonly spread: number;
  /** How far a line reaches beyond its middle. */
  readonly reach: number;
  /** The strength of each weight: gain * weight ** gamma. */
  readonly gain: number;
  readonly gamma: number;
  /** Only the lines of these tokens. */
  readonly only?: Focus | null;
}

/** The cutoffs that draw every weight inside a mask, or every one whose byte is not smaller. */
export function everyLine(mask: Mask, least = 1): Uint16Array {
  return Uint16Array.from(mask.query, (shown) => (shown ? least : 256));
}

/** The lines of some heads that touch the picture. */
export function collectLines(weights: LayerWeights, heads: readonly number[], options: LineOptions): Lines {
  const store = new GrowingLines();
  const offsets = new Uint32Array(heads.length + 1);
  const strength = WEIGHT.map((weight) => options.gain * weight ** options.gamma);
  heads.forEach((head, index) => {
    const port = heads.length > 1 ? ((index + 0.5) / heads.length - 0.5) * options.spread : 0;
    collectHead(weights, head, port, options.cutoffs[index], strength, options, store);
    offsets[index + 1] = store.length;
  });
  return { offsets, ...store.arrays() };
}

function collectHead(
  weights: LayerWeights,
  head: number,
  port: number,
  cutoffs: Uint16Array,
  strength: Float32Array,
  options: LineOptions,
  store: GrowingLines,
): void {
  const { query: from, mask, only } = options;
  const bytes = weights.bytes(head);
  const { queries, keys } = weights;
  const allowed =
    only?.side === "key" ? mask.key.map((shown, key) => (only.tokens.includes(key) ? shown : 0)) : mask.key;
  const someQueries = only?.side === "query" ? only.tokens : null;
  for (let at = 0; at < (someQueries?.length ?? queries); at++) {
    const query = someQueries ? someQueries[at] : at;
    if (cutoffs[query] > 255) continue;
    const start = from.top + (query + 0.5) * from.pitch + port;
    const row = bytes.subarray(query * keys, (query + 1) * keys);
    collectRow(row, start, port, cutoffs[query], strength, allowed, options, store);
  }
}

function collectRow(
  row: Uint8Array,
  start: number,
  port: number,
  cutoff: number,
  strength: Float32Array,
  allowed: Uint8Array,
  { height, key: to, reach }: LineOptions,
  store: GrowingLines,
): void {
  for (let key = 0; key < row.length; key++) {
    const byte = row[key];
    if (byte < cutoff || !allowed[key]) continue;
    const end = to.top + (key + 0.5) * to.pitch + port;
    if (Math.max(start, end) < -reach || Math.min(start, end) > height + reach) continue;
    store.add(start, end - start, strength[byte]);
  }
}

class GrowingLines {
  length = 0;
  #starts = new Float32Array(4096);
  #rises = new Float32Array(4096);
  #strengths = new Float32Array(4096);

  add(start: number, rise: number, strength: number): void {
    if (this.length === this.#starts.length) this.#grow();
    this.#starts[this.length] = start;
    this.#rises[this.length] = rise;
    this.#strengths[this.length++] = strength;
  }

  arrays(): Omit<Lines, "offsets"> {
    const used = (values: Float32Array) => values.subarray(0, this.length);
    return { starts: used(this.#starts), rises: used(this.#rises), strengths: used(this.#strengths) };
  }

  #grow(): void {
    this.#starts = doubled(this.#starts);
    this.#rises = doubled(this.#rises);
    this.#strengths = doubled(this.#strengths);
  }
}

function doubled(values: Float32Array): Float32Array<ArrayBuffer> {
  const larger = new Float32Array(2 * values.length);
  larger.set(values);
  return larger;
}
