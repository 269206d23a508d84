import type { Mask } from "./mask";
import { type LayerWeights, WEIGHT } from "./weights";

/** The shares of a row that can be drawn, in percent. The last one is everything that is not stored as 0. */
export const SHARES: readonly number[] = Array.from({ length: 100 }, (_, step) => step + 1);

/** For one head and each of SHARES: what is drawn when every row keeps its strongest keys up to that share. */
export interface HeadShares {
  /** Axes share, query: the smallest byte that is drawn, 256 where nothing is. */
  readonly cutoffs: Uint16Array;
  readonly lines: Float64Array;
  readonly mass: Float64Array;
  /** Mass of the whole head, what the mask hides included. */
  readonly total: number;
}

const NOTHING = 256;

/**
 * Ranks the weights of each row by counting bytes.
 *
 * A share counts against the row's mass inside the mask. Weights that equal the weakest one kept are kept too, so
 * that the picture does not depend on the order of the keys.
 */
export function headShares(weights: LayerWeights, head: number, mask: Mask): HeadShares {
  const { queries } = weights;
  const shares: Mutable = {
    cutoffs: new Uint16Array(SHARES.length * queries).fill(NOTHING),
    lines: new Float64Array(SHARES.length),
    mass: new Float64Array(SHARES.length),
    total: headMass(weights, head),
  };
  const counts = new Uint32Array(256);
  for (let query = 0; query < queries; query++) {
    if (!mask.query[query]) continue;
    countRow(weights, head, query, mask.key, counts);
    rankRow(counts, query, queries, shares);
  }
  return shares;
}

type Mutable = { -readonly [Key in keyof HeadShares]: HeadShares[Key] };

/** How often each byte occurs in a row, inside the mask. */
export function countRow(
  weights: LayerWeights,
  head: number,
  query: number,
  shown: Uint8Array,
  counts: Uint32Array,
): void {
  const { keys } = weights;
  const bytes = weights.bytes(head);
  const start = query * keys;
  counts.fill(0);
  for (let key = 0; key < keys; key++) if (shown[key]) counts[bytes[start + key]]++;
}

function rankRow(counts: Uint32Array, query: number, queries: number, { cutoffs, lines, mass }: Mutable): void {
  let rowMass = 0;
  let strongest = 0;
  for (let byte = 1; byte < 256; byte++) {
    if (counts[byte] === 0) continue;
    rowMass += counts[byte] * WEIGHT[byte];
    strongest = byte;
  }
  const last = SHARES.length - 1;
  let keptLines = 0;
  let keptMass = 0;
  let step = 0;
  for (let byte = strongest; byte > 0; byte--) {
    if (counts[byte] === 0) continue;
    keptLines += counts[byte];
    keptMass += counts[byte] * WEIGHT[byte];
    while (step < last && 100 * keptMass >= SHARES[step] * rowMass) {
      cutoffs[step * queries + query] = byte;
      lines[step] += keptLines;
      mass[step] += keptMass;
      step++;
    }
  }
  for (; step <= last && keptLines > 0; step++) {
    cutoffs[step * queries + query] = 1;
    lines[step] += keptLines;
    mass[step] += keptMass;
  }
}

function headMass(weights: LayerWeights, head: number): number {
  const counts = new Uint32Array(256);
  const bytes = weights.bytes(head);
  for (let at = 0; at < bytes.length; at++) counts[bytes[at]]++;
  let mass = 0;
  for (let byte = 1; byte < 256; byte++) mass += counts[byte] * WEIGHT[byte];
  return mass;
}

/** What several heads draw together at one of SHARES. */
export interface Drawn {
  readonly lines: number;
  readonly mass: number;
  /** Part of all attention of these heads that is drawn. */
  readonly part: number;
}

export function drawn(heads: readonly HeadShares[], step: number): Drawn {
  let [lines, mass, total] = [0, 0, 0];
  for (const head of heads) {
    lines += head.lines[step];
    mass += head.mass[step];
    total += head.total;
  }
  return { lines, mass, part: total > 0 ? mass / total : 0 };
}

/** The step with the largest share whose lines fit the budget; the smallest share where none does. */
export function affordableStep(heads: readonly HeadShares[], budget: number): number {
  for (let step = SHARES.length - 1; step > 0; step--) if (drawn(heads, step).lines <= budget) return step;
  return 0;
}

/** The smallest byte drawn of each query, at one of SHARES. */
export function cutoffsAt(shares: HeadShares, step: number): Uint16Array {
  const queries = shares.cutoffs.length / SHARES.length;
  return shares.cutoffs.subarray(step * queries, (step + 1) * queries);
}
