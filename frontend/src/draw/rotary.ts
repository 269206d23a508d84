import type { PageRotary } from "../contract/page";
import { keyOf, queryOf } from "./neurons";
import type { ScoreParts } from "./scores";

/** The two features of a pair that rotary positions turn together. */
export function pairOf({ frequencies, style, start }: PageRotary, pair: number): readonly [number, number] {
  if (style === "neighbours") return [start + 2 * pair, start + 2 * pair + 1];
  return [start + pair, start + pair + frequencies.length];
}

/** The features, pair by pair, fastest first; features that are not turned come last. */
export function byPair(rotary: PageRotary, features: number): number[] {
  const turned = rotary.frequencies.flatMap((_, pair) => [...pairOf(rotary, pair)]);
  const rest = Array.from({ length: features }, (_, feature) => feature).filter((feature) => !turned.includes(feature));
  return [...turned, ...rest];
}

/**
 * The score of a query and a key if they stood at other distances (query - key), before cap and bias.
 *
 * A pair of features adds |q| |k| cos(angle); a distance larger by one turns that angle by the pair's frequency.
 */
export function scoreByDistance(
  parts: ScoreParts,
  rotary: PageRotary,
  head: number,
  [query, key]: readonly [number, number],
  distances: readonly number[],
): number[] {
  const [q, k] = [queryOf(parts, head, query), keyOf(parts, head, key)];
  const turned = new Set<number>();
  const pairs = rotary.frequencies.map((frequency, pair) => {
    const [a, b] = pairOf(rotary, pair);
    turned.add(a).add(b);
    return { frequency, even: q[a] * k[a] + q[b] * k[b], odd: q[b] * k[a] - q[a] * k[b] };
  });
  const rest = q.reduce((sum, value, feature) => (turned.has(feature) ? sum : sum + value * k[feature]), 0);
  return distances.map((distance) => {
    const more = distance - (query - key);
    const sum = pairs.reduce(
      (total, { frequency, even, odd }) => total + even * Math.cos(frequency * more) - odd * Math.sin(frequency * more),
      rest,
    );
    return parts.scale * sum;
  });
}
