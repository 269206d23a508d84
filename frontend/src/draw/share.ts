import type { Mask } from "./mask";
import { type Code, codeOf, type LayerValues, topOf } from "./values";

/** The shares of a row that can be drawn, in percent. The last one is everything that is not stored as 0. */
export const SHARES: readonly number[] = Array.from({ length: 100 }, (_, step) => step + 1);

/** For one head and each of SHARES: what is drawn when every row keeps its strongest keys up to that share. */
export interface HeadShares {
  /** Axes share, query: the smallest level that is drawn, 256 where nothing is. */
  readonly cutoffs: Uint16Array;
  readonly lines: Float64Array;
  readonly mass: Float64Array;
  /** The same as it counts for the part that is drawn: where rows sum to anything, each is made to sum to 1. */
  readonly counted: Float64Array;
  /** What counts of the whole head, what the mask hides included. */
  readonly total: number;
}

const NOTHING = 256;

/**
 * Ranks the values of each row by size, by counting the levels of its bytes.
 *
 * A share counts against the row's mass inside the mask. Values that equal the weakest one kept are kept too, so
 * that the picture does not depend on the order of the keys.
 */
export function headShares(values: LayerValues, head: number, mask: Mask): HeadShares {
  const { queries, keys, free } = values;
  const [{ sizes }, top] = [codeOf(values), topOf(values, head)];
  const shares = {
    cutoffs: new Uint16Array(SHARES.length * queries).fill(NOTHING),
    lines: new Float64Array(SHARES.length),
    mass: new Float64Array(SHARES.length),
    counted: new Float64Array(SHARES.length),
    total: 0,
  };
  const every = new Uint8Array(keys).fill(1);
  const all = new Uint32Array(256);
  const shown = mask.key.every((key) => key) ? all : new Uint32Array(256);
  for (let query = 0; query < queries; query++) {
    countRow(values, head, query, every, all);
    const whole = sizeOf(all, sizes);
    if (whole === 0) continue;
    const factor = free ? 1 / whole : top;
    shares.total += whole * factor;
    if (!mask.query[query]) continue;
    if (shown !== all) countRow(values, head, query, mask.key, shown);
    const row = rankRow(shown, sizes);
    for (let step = 0; step < SHARES.length; step++) {
      shares.cutoffs[step * queries + query] = row.cutoffs[step];
      shares.lines[step] += row.lines[step];
      shares.mass[step] += row.sizes[step] * top;
      shares.counted[step] += row.sizes[step] * factor;
    }
  }
  return shares;
}

/** How often each level occurs in a row, inside the mask. */
export function countRow(
  values: LayerValues,
  head: number,
  query: number,
  shown: Uint8Array,
  counts: Uint32Array,
): void {
  const { keys } = values;
  const { levels }: Code = codeOf(values);
  const bytes = values.bytes(head);
  const start = query * keys;
  counts.fill(0);
  for (let key = 0; key < keys; key++) if (shown[key]) counts[levels[bytes[start + key]]]++;
}

function sizeOf(counts: Uint32Array, sizes: Float32Array): number {
  let sum = 0;
  for (let level = 1; level < 256; level++) if (counts[level] > 0) sum += counts[level] * sizes[level];
  return sum;
}

/** For each of SHARES: the smallest level drawn of a row, and number and size of what is drawn. */
interface RankedRow {
  readonly cutoffs: Uint16Array;
  readonly lines: Float64Array;
  readonly sizes: Float64Array;
}

/** Filled anew for each row. */
const ROW: RankedRow = {
  cutoffs: new Uint16Array(SHARES.length),
  lines: new Float64Array(SHARES.length),
  sizes: new Float64Array(SHARES.length),
};

function rankRow(counts: Uint32Array, sizes: Float32Array): RankedRow {
  const whole = sizeOf(counts, sizes);
  const last = SHARES.length - 1;
  let [lines, size, step] = [0, 0, 0];
  const put = (cutoff: number) => {
    ROW.cutoffs[step] = cutoff;
    ROW.lines[step] = lines;
    ROW.sizes[step] = size;
    step++;
  };
  for (let level = 255; level > 0; level--) {
    if (counts[level] === 0) continue;
    lines += counts[level];
    size += counts[level] * sizes[level];
    while (step < last && 100 * size >= SHARES[step] * whole) put(level);
  }
  while (step <= last) put(lines > 0 ? 1 : NOTHING);
  return ROW;
}

/** What several heads draw together at one of SHARES. */
export interface Drawn {
  readonly lines: number;
  readonly mass: number;
  /** Part of all that these heads have that is drawn. */
  readonly part: number;
}

export function drawn(heads: readonly HeadShares[], step: number): Drawn {
  let [lines, mass, counted, total] = [0, 0, 0, 0];
  for (const head of heads) {
    lines += head.lines[step];
    mass += head.mass[step];
    counted += head.counted[step];
    total += head.total;
  }
  return { lines, mass, part: total > 0 ? counted / total : 0 };
}

/** The step with the largest share whose lines fit the budget; the smallest share where none does. */
export function affordableStep(heads: readonly HeadShares[], budget: number): number {
  for (let step = SHARES.length - 1; step > 0; step--) if (drawn(heads, step).lines <= budget) return step;
  return 0;
}

/** The smallest level drawn of each query, at one of SHARES. */
export function cutoffsAt(shares: HeadShares, step: number): Uint16Array {
  const queries = shares.cutoffs.length / SHARES.length;
  return shares.cutoffs.subarray(step * queries, (step + 1) * queries);
}
