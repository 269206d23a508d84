import { SINK_PART, SINK_TIMES } from "../contract/values";
import type { TokenAttention } from "./focus";

export interface Sink {
  readonly key: number;
  /** Part of all attention that it receives. */
  readonly part: number;
}

/** Keys that take most of the mass, whatever they are called; the strongest first. */
export function findSinks({ mean }: TokenAttention): Sink[] {
  const total = mean.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return [];
  const least = Math.max(SINK_PART, SINK_TIMES / mean.length);
  return Array.from(mean, (weight, key) => ({ key, part: weight / total }))
    .filter(({ part }) => part >= least)
    .sort((a, b) => b.part - a.part);
}
