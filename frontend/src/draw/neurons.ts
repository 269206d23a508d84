import { kvHead, type ScoreParts } from "./scores";

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
