import type { TokenAttention } from "./focus";

/** A key takes most of the mass where it gets this part of all attention, */
const LEAST_PART = 0.1;
/** and this many times what it would get if all keys got the same. */
const LEAST_TIMES = 4;

export interface Sink {
  readonly key: number;
  /** Part of all attention that it receives. */
  readonly part: number;
}

/** Keys that take most of the mass, whatever they are called; the strongest first. */
export function findSinks({ mean }: TokenAttention): Sink[] {
  const total = mean.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return [];
  const least = Math.max(LEAST_PART, LEAST_TIMES / mean.length);
  return Array.from(mean, (weight, key) => ({ key, part: weight / total }))
    .filter(({ part }) => part >= least)
    .sort((a, b) => b.part - a.part);
}
