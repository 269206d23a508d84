/** How far two quantities agree. */
export interface Agreement {
  /** Queries that were compared. */
  readonly queries: number;
  /** Part of them whose strongest key is the same. */
  readonly sameTop: number;
  /** Spearman's rank correlation over all compared pairs of query and key. */
  readonly rank: number;
}

const MOST_QUERIES = 96;
const MOST_PAIRS = 20_000;

type Rows = (query: number) => Float32Array;

/** Compares two quantities over evenly spaced queries; pairs where one is not finite do not count. */
export function agreement(one: Rows, other: Rows, queries: number): Agreement | null {
  const count = Math.min(queries, MOST_QUERIES);
  const [a, b]: [number[], number[]] = [[], []];
  let [compared, same] = [0, 0];
  for (let at = 0; at < count; at++) {
    const query = Math.floor((at * queries) / count);
    const [rowA, rowB] = [one(query), other(query)];
    const pairs = [...rowA.keys()].filter((key) => Number.isFinite(rowA[key]) && Number.isFinite(rowB[key]));
    if (pairs.length === 0) continue;
    compared++;
    if (topOf(rowA, pairs) === topOf(rowB, pairs)) same++;
    const skip = Math.max(1, Math.floor((pairs.length * count) / MOST_PAIRS));
    for (let i = at % skip; i < pairs.length; i += skip) {
      a.push(rowA[pairs[i]]);
      b.push(rowB[pairs[i]]);
    }
  }
  return compared > 0 ? { queries: compared, sameTop: same / compared, rank: rankCorrelation(a, b) } : null;
}

function topOf(row: Float32Array, pairs: readonly number[]): number {
  return pairs.reduce((top, key) => (row[key] > row[top] ? key : top), pairs[0]);
}

/** Spearman's rank correlation; equal values share their mean rank. NaN where one side does not vary. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [ranksA, ranksB] = [ranks(a), ranks(b)];
  const mean = (a.length - 1) / 2;
  let [both, squareA, squareB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [ranksA[i] - mean, ranksB[i] - mean];
    both += x * y;
    squareA += x * x;
    squareB += y * y;
  }
  return both / Math.sqrt(squareA * squareB);
}

function ranks(values: readonly number[]): Float64Array {
  const order = Uint32Array.from(values.keys()).sort((i, j) => values[i] - values[j]);
  const found = new Float64Array(values.length);
  for (let first = 0; first < order.length; ) {
    let end = first + 1;
    while (end < order.length && values[order[end]] === values[order[first]]) end++;
    for (let i = first; i < end; i++) found[order[i]] = (first + end - 1) / 2;
    first = end;
  }
  return found;
}
