// Two atlases side by side: what `data/index.js` holds of the pairs of their heads.

import type { AtlasIndex } from "./atlas";

export interface ComparedPair {
  /** Places of both heads among those of their atlas. */
  readonly a: number;
  readonly b: number;
  readonly similarity: number;
  /** Mean similarity of the head of A and all heads of B. */
  readonly chance: number;
  readonly nextBest: number | null;
  /** In the order of `parts` of the index; null where it is not known. */
  readonly parts: readonly (number | null)[];
  readonly gained: readonly string[];
  readonly lost: readonly string[];
}

/** A score of both heads of a pair, and the interval of the difference. */
export type ComparedScore = readonly [
  pair: number,
  pattern: string,
  before: number,
  after: number,
  low: number | null,
  high: number | null,
];

export interface ComparisonIndex {
  readonly kind: "comparison";
  readonly a: AtlasIndex;
  readonly b: AtlasIndex;
  readonly names: readonly [a: string, b: string];
  readonly matching: "best" | "number";
  readonly summary: string;
  readonly caution: string;
  readonly parts: readonly string[];
  /** Mean similarity of matched heads, of random pairs, and of different heads that are matched in the same way. */
  readonly similarity: number | null;
  readonly chance: number;
  readonly different: number | null;
  readonly confidence: number;
  readonly sameTexts: boolean;
  readonly pairs: readonly ComparedPair[];
  /** Those whose interval does not hold 0 first, the largest difference first. */
  readonly differences: readonly ComparedScore[];
}
