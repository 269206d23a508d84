import type { PageRotary } from "../../types/page";
import { type LayerWeights, once } from "./weights";

/** All that the scores and weights of a layer are recomputed from. */
export interface ScoreParts {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly features: number;
  /** Axes head, query, feature. */
  readonly query: Float32Array;
  readonly kvHeads: number;
  /** Axes kv_head, key, feature. */
  readonly key: Float32Array;
  readonly scale: number;
  readonly softCap: number | null;
  /** Added to the score of a head, a query and a key; null for nothing. */
  readonly bias: Bias | null;
  readonly sinks: readonly number[] | null;
  readonly visible: Visible | null;
}

/** Axes head, query, key; or head, offset where only key - query counts. One head stands for all. */
export type Bias = { readonly values: Float32Array; readonly heads: number; readonly byOffset: boolean };

/** Which keys each query may look at. */
export interface Visible {
  /** Where the runs of each query begin; one entry more than queries. */
  readonly offsets: Uint32Array;
  /** First key and end of each run. */
  readonly bounds: Int32Array;
}

/** The key head that a head shares. */
export function kvHead({ heads, kvHeads }: Pick<ScoreParts, "heads" | "kvHeads">, head: number): number {
  return Math.floor((head * kvHeads) / heads);
}

export function visibleRuns(runs: Int32Array, queries: number): Visible {
  const count = runs.length / 3;
  const offsets = new Uint32Array(queries + 1);
  const bounds = new Int32Array(2 * count);
  for (let run = 0; run < count; run++) {
    offsets[runs[3 * run] + 1]++;
    bounds[2 * run] = runs[3 * run + 1];
    bounds[2 * run + 1] = runs[3 * run + 2];
  }
  for (let query = 0; query < queries; query++) offsets[query + 1] += offsets[query];
  return { offsets, bounds };
}

/** Calls back with each stretch of keys that a query may look at. */
export function eachRun(
  visible: Visible | null,
  query: number,
  keys: number,
  use: (start: number, end: number) => void,
): void {
  if (visible === null) {
    use(0, keys);
    return;
  }
  for (let run = visible.offsets[query]; run < visible.offsets[query + 1]; run++) {
    use(visible.bounds[2 * run], visible.bounds[2 * run + 1]);
  }
}

/** The scores of one query: what goes into the softmax, -Infinity where it may not look. */
export function scoreRow(parts: ScoreParts, head: number, query: number, out?: Float32Array): Float32Array {
  const { keys, features, visible, softCap, bias } = parts;
  const scores = out ?? new Float32Array(keys);
  if (visible) scores.fill(Number.NEGATIVE_INFINITY);
  const scaled = queryOf(parts, head, query).map((value) => value * parts.scale);
  const first = kvHead(parts, head) * keys * features;
  eachRun(visible, query, keys, (start, end) => dotInto(scores, scaled, parts.key, first, start, end));
  if (softCap !== null) {
    for (let key = 0; key < keys; key++) {
      if (scores[key] !== Number.NEGATIVE_INFINITY) scores[key] = softCap * Math.tanh(scores[key] / softCap);
    }
  }
  const start = bias ? biasStart(parts, bias, head, query) : 0;
  if (bias) for (let key = 0; key < keys; key++) scores[key] += bias.values[start + key];
  return scores;
}

/** One score. */
export function scoreAt(parts: ScoreParts, head: number, query: number, key: number): number {
  const { queries, keys, features, scale, softCap } = parts;
  if (!sees(parts.visible, query, key)) return Number.NEGATIVE_INFINITY;
  const q = (head * queries + query) * features;
  const k = (kvHead(parts, head) * keys + key) * features;
  let dot = 0;
  for (let i = 0; i < features; i++) dot += parts.query[q + i] * parts.key[k + i];
  const score = softCap === null ? dot * scale : softCap * Math.tanh((dot * scale) / softCap);
  return score + biasAt(parts, parts.bias, head, query, key);
}

function sees(visible: Visible | null, query: number, key: number): boolean {
  if (visible === null) return true;
  for (let run = visible.offsets[query]; run < visible.offsets[query + 1]; run++) {
    if (key >= visible.bounds[2 * run] && key < visible.bounds[2 * run + 1]) return true;
  }
  return false;
}

export function biasAt(parts: ScoreParts, bias: Bias | null, head: number, query: number, key: number): number {
  return bias ? bias.values[biasStart(parts, bias, head, query) + key] : 0;
}

function dotInto(
  scores: Float32Array,
  query: Float32Array,
  keys: Float32Array,
  first: number,
  start: number,
  end: number,
): void {
  const features = query.length;
  const whole = features - (features % 4);
  for (let key = start; key < end; key++) {
    const at = first + key * features;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let i = 0; i < whole; i += 4) {
      a += query[i] * keys[at + i];
      b += query[i + 1] * keys[at + i + 1];
      c += query[i + 2] * keys[at + i + 2];
      d += query[i + 3] * keys[at + i + 3];
    }
    for (let i = whole; i < features; i++) a += query[i] * keys[at + i];
    scores[key] = a + b + c + d;
  }
}

function biasStart({ queries, keys }: ScoreParts, bias: Bias, head: number, query: number): number {
  const from = bias.heads === 1 ? 0 : head;
  return bias.byOffset ? from * (queries + keys - 1) + queries - 1 - query : (from * queries + query) * keys;
}

/** Weights that are recomputed from scores: exactly for a row or column, as bytes for a whole head, which are kept. */
export function scoreWeights(parts: ScoreParts): LayerWeights {
  const { heads, queries, keys, sinks } = parts;
  const sinkOf = (head: number) => sinks?.[head] ?? Number.NEGATIVE_INFINITY;
  const row = (head: number, query: number) => softmaxInto(scoreRow(parts, head, query), sinkOf(head));
  /** The bytes of a head, and the logarithm of the sum in each query's softmax. */
  const worked = once((head) => {
    const bytes = new Uint8Array(queries * keys);
    const sums = new Float64Array(queries);
    const scores = new Float32Array(keys);
    for (let query = 0; query < queries; query++) {
      scoreRow(parts, head, query, scores);
      sums[query] = softmaxBytes(scores, sinkOf(head), bytes, query * keys);
    }
    return { bytes, sums };
  });
  const column = (head: number, key: number) => {
    const { sums } = worked(head);
    return Float32Array.from(sums, (sum, query) =>
      sum === Number.NEGATIVE_INFINITY ? 0 : Math.exp(scoreAt(parts, head, query, key) - sum),
    );
  };
  return { heads, queries, keys, bytes: (head) => worked(head).bytes, row, column };
}

function softmaxInto(scores: Float32Array, sink: number): Float32Array {
  const sum = logSumExp(scores, sink);
  for (let key = 0; key < scores.length; key++) {
    scores[key] = sum === Number.NEGATIVE_INFINITY ? 0 : Math.exp(scores[key] - sum);
  }
  return scores;
}

export function logSumExp(scores: Float32Array, sink: number): number {
  let top = sink;
  for (let key = 0; key < scores.length; key++) if (scores[key] > top) top = scores[key];
  if (top === Number.NEGATIVE_INFINITY) return top;
  let sum = Math.exp(sink - top);
  for (let key = 0; key < scores.length; key++) sum += Math.exp(scores[key] - top);
  return top + Math.log(sum);
}

/**
 * Writes bytes round(255 * sqrt(weight)), and gives the logarithm of the softmax's sum.
 *
 * The root of an exponential is the exponential of half the exponent.
 */
function softmaxBytes(scores: Float32Array, sink: number, bytes: Uint8Array, start: number): number {
  let top = sink;
  for (let key = 0; key < scores.length; key++) if (scores[key] > top) top = scores[key];
  if (top === Number.NEGATIVE_INFINITY) return top;
  let sum = Math.exp(sink - top);
  for (let key = 0; key < scores.length; key++) {
    const root = Math.exp(0.5 * (scores[key] - top));
    sum += root * root;
    scores[key] = root;
  }
  const factor = 255 / Math.sqrt(sum);
  for (let key = 0; key < scores.length; key++) bytes[start + key] = scores[key] * factor + 0.5;
  return top + Math.log(sum);
}

/** The numbers of one query, or of one key, of a head. */
export function queryOf({ query, queries, features }: ScoreParts, head: number, token: number): Float32Array {
  const start = (head * queries + token) * features;
  return query.subarray(start, start + features);
}

export function keyOf(parts: ScoreParts, head: number, token: number): Float32Array {
  const { key, keys, features } = parts;
  const start = (kvHead(parts, head) * keys + token) * features;
  return key.subarray(start, start + features);
}

/** What each neuron adds to the score of a query and a key, before cap and bias. */
export function added(parts: ScoreParts, head: number, query: number, key: number): Float32Array {
  const [q, k] = [queryOf(parts, head, query), keyOf(parts, head, key)];
  return q.map((value, feature) => value * k[feature] * parts.scale);
}

/**
 * What each neuron adds to what sets the attended keys of a query apart: its part of the score as mean over the keys
 * by weight, less its plain mean over the keys that can be seen.
 */
export function addedOverall(parts: ScoreParts, head: number, query: number, weights: Float32Array): Float32Array {
  const sums = new Float32Array(parts.features);
  const seen = [...weights.keys()].filter((key) => weights[key] > 0);
  for (const key of seen) {
    const factor = weights[key] - 1 / seen.length;
    added(parts, head, query, key).forEach((value, feature) => {
      sums[feature] += factor * value;
    });
  }
  return sums;
}

/** The neurons by the size of what they add, largest first. */
export function ranked(contributions: Float32Array): number[] {
  return [...contributions.keys()].sort((a, b) => Math.abs(contributions[b]) - Math.abs(contributions[a]) || a - b);
}

/** The part of all that is added, whatever its sign, that the first of a ranking carry: one number for each count. */
export function carried(contributions: Float32Array, order: readonly number[]): number[] {
  const total = contributions.reduce((sum, value) => sum + Math.abs(value), 0);
  let sum = 0;
  return order.map((feature) => {
    sum += Math.abs(contributions[feature]);
    return total > 0 ? sum / total : 0;
  });
}

/** The features, pair by pair, fastest first; features that are not turned come last. */
export function byPair({ frequencies, style, start }: PageRotary, features: number): number[] {
  const turned = frequencies.flatMap((_, pair) =>
    style === "neighbours"
      ? [start + 2 * pair, start + 2 * pair + 1]
      : [start + pair, start + pair + frequencies.length],
  );
  const rest = Array.from({ length: features }, (_, feature) => feature).filter((feature) => !turned.includes(feature));
  return [...turned, ...rest];
}
