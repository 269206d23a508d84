/** How far two quantities agree. */
export interface Agreement {
  /** Rows that were compared. */
  readonly rows: number;
  /** Part of them whose strongest key is the same. */
  readonly sameTop: number;
  /** Mean of their rank correlations (Spearman), of those rows where it is defined; NaN where there is none. */
  readonly rank: number;
}

const MOST_ROWS = 192;
const MOST_PAIRS = 60_000;

type Row = (row: number) => Float32Array;

/** Compares two quantities over evenly spaced rows; pairs where one is not finite do not count. */
export function agreement(one: Row, other: Row, rows: number): Agreement | null {
  const count = Math.min(rows, MOST_ROWS);
  let [compared, same, ranked, sum] = [0, 0, 0, 0];
  for (let at = 0; at < count; at++) {
    const row = Math.floor((at * rows) / count);
    const [a, b] = [one(row), other(row)];
    const pairs = [...a.keys()].filter((key) => Number.isFinite(a[key]) && Number.isFinite(b[key]));
    if (pairs.length === 0) continue;
    compared++;
    if (topOf(a, pairs) === topOf(b, pairs)) same++;
    const skip = Math.max(1, Math.floor((pairs.length * count) / MOST_PAIRS));
    const some = pairs.filter((_, place) => place % skip === at % skip);
    const rank = rankCorrelation(
      some.map((key) => a[key]),
      some.map((key) => b[key]),
    );
    if (Number.isNaN(rank)) continue;
    ranked++;
    sum += rank;
  }
  return compared > 0 ? { rows: compared, sameTop: same / compared, rank: sum / ranked } : null;
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
