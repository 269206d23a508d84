import { type Focus, otherSide } from "./columns";
import type { Mask } from "./mask";
import { codeOf, type LayerValues, largest, topOf } from "./values";

/** What some tokens (their mean, or their sum) and all tokens of the other side have between them; 0 where that is not told. */
export interface TokenAttention {
  /** Axes head (as chosen), token of the other side. */
  readonly byHead: readonly Float32Array[];
  /** Mean over the chosen heads. */
  readonly mean: Float32Array;
}

export function tokenAttention(
  weights: LayerValues,
  heads: readonly number[],
  mask: Mask,
  { side, tokens }: Focus,
  pinned: "mean" | "sum" = "mean",
): TokenAttention {
  const count = side === "query" ? weights.keys : weights.queries;
  const shown = mask[otherSide(side)];
  const read = side === "query" ? weights.row : weights.column;
  const used = tokens.filter((token) => mask[side][token]);
  const parts = pinned === "sum" ? 1 : used.length;
  const byHead = heads.map((head) => {
    const sum = new Float32Array(count);
    for (const token of used) {
      const values = read(head, token);
      for (let other = 0; other < count; other++) {
        if (shown[other] && values[other] !== Number.NEGATIVE_INFINITY) sum[other] += values[other] / parts;
      }
    }
    return sum;
  });
  return { byHead, mean: meanOf(byHead, count) };
}

/** The share of these queries' weight that no key has, mean over the heads; queries that look at nothing have none. */
export function missingShare(weights: LayerValues, heads: readonly number[], queries: readonly number[]): number {
  const sums = heads.flatMap((head) => queries.map((query) => weights.row(head, query).reduce((a, b) => a + b)));
  const alive = sums.filter(Boolean);
  return alive.reduce((missing, sum) => missing + 1 - sum, 0) / (alive.length || 1);
}

export function strongestWeight({ byHead }: TokenAttention): number {
  return byHead.reduce((most, head) => Math.max(most, largest(head)), 0);
}

/** What each key receives, as mean over the queries. */
export function received(weights: LayerValues, heads: readonly number[], mask: Mask): TokenAttention {
  const { queries, keys } = weights;
  const byHead = heads.map((head) => {
    const bytes = weights.bytes(head);
    const { parts } = codeOf(weights);
    const top = topOf(weights, head);
    const sums = new Float32Array(keys);
    for (let query = 0; query < queries; query++) {
      if (!mask.query[query]) continue;
      const row = query * keys;
      for (let key = 0; key < keys; key++) sums[key] += parts[bytes[row + key]];
    }
    return sums.map((sum, key) => (mask.key[key] ? (sum * top) / queries : 0));
  });
  return { byHead, mean: meanOf(byHead, keys) };
}

function meanOf(byHead: readonly Float32Array[], count: number): Float32Array {
  const mean = new Float32Array(count);
  for (const head of byHead) for (let token = 0; token < count; token++) mean[token] += head[token] / byHead.length;
  return mean;
}

/** The tokens with most attention, largest first, by size or by value; those with none are left out. */
export function strongest(attention: Float32Array, most: number, order = Math.abs): number[] {
  return Array.from(attention.keys())
    .filter((token) => attention[token] !== 0)
    .sort((a, b) => order(attention[b]) - order(attention[a]) || a - b)
    .slice(0, most);
}

/** The colours of bars: of each map, or of values above and below 0. */
export type BarColors = { readonly maps: readonly string[] } | { readonly signs: readonly [string, string] };

/** A bar for what a token has: its length as part of `full`, and its colours. */
export function barOf({ mean, byHead }: TokenAttention, token: number, full: number, colors: BarColors) {
  const length = `${(100 * Math.abs(mean[token])) / full}%`;
  if ("signs" in colors) return { length, parts: stackedBar([1], [colors.signs[mean[token] < 0 ? 1 : 0]]) };
  const parts = byHead.map((head) => head[token]);
  return { length, parts: stackedBar(parts, colors.maps) };
}

/** A CSS background of coloured parts side by side, each as wide as its share of the sum. */
export function stackedBar(parts: readonly number[], colors: readonly string[]): string {
  const sum = parts.reduce((a, b) => a + b, 0);
  if (sum <= 0) return "none";
  let done = 0;
  const stops = parts.flatMap((part, index) => {
    const from = percent(done / sum);
    done += part;
    return part > 0 ? [`${colors[index]} ${from} ${percent(done / sum)}`] : [];
  });
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}

function percent(part: number): string {
  return `${Math.round(part * 1e4) / 100}%`;
}
