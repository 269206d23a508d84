import { type Focus, otherSide } from "./columns";
import type { Mask } from "./mask";
import { codeOf, type LayerValues, topOf } from "./values";

/** What some tokens (their mean, or their sum) and each token of the other side have between them in a head; 0 where that is not told. */
export function tokenAttention(
  weights: LayerValues,
  head: number,
  mask: Mask,
  { side, tokens }: Focus,
  pinned: "mean" | "sum" = "mean",
): Float32Array {
  const count = side === "query" ? weights.keys : weights.queries;
  const shown = mask[otherSide(side)];
  const read = side === "query" ? weights.row : weights.column;
  const used = tokens.filter((token) => mask[side][token]);
  const parts = pinned === "sum" ? 1 : used.length;
  const sum = new Float32Array(count);
  for (const token of used) {
    const values = read(head, token);
    for (let other = 0; other < count; other++) {
      if (shown[other] && values[other] !== Number.NEGATIVE_INFINITY) sum[other] += values[other] / parts;
    }
  }
  return sum;
}

/** The share of these queries' weight that no key has; queries that look at nothing have none. */
export function missingShare(weights: LayerValues, head: number, queries: readonly number[]): number {
  const sums = queries.map((query) => weights.row(head, query).reduce((a, b) => a + b));
  const alive = sums.filter(Boolean);
  return alive.reduce((missing, sum) => missing + 1 - sum, 0) / (alive.length || 1);
}

/** What each key receives, as mean over the queries. */
export function received(weights: LayerValues, head: number, mask: Mask): Float32Array {
  const { queries, keys } = weights;
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
}

/** The tokens with most attention, largest first, by size or by value; those with none are left out. */
export function strongest(attention: Float32Array, most: number, order = Math.abs): number[] {
  return Array.from(attention.keys())
    .filter((token) => attention[token] !== 0)
    .sort((a, b) => order(attention[b]) - order(attention[a]) || a - b)
    .slice(0, most);
}
