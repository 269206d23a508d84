import type { PageTokens } from "../../types/page";
import { signedByte } from "./color";
import type { Tile } from "./heat";
import { eachRun, type ScoreParts, scoreAt, scoreRow, type Visible } from "./scores";
import { type Focus, type Mask, otherSide, type Side } from "./tokens";
import { bytesOfRows, columnOf, type LayerWeights, once, toByte, WEIGHT, type WeightShape } from "./weights";

/** What the bytes of a quantity stand for. */
export interface Code {
  /** The part of the largest size that each byte stands for: 0 to 1, or -1 to 1 where signed. */
  readonly parts: Float32Array;
  /** The place of each byte in the order of sizes; 0 is nothing. */
  readonly levels: Uint8Array;
  /** The size of each level, as part of the largest. */
  readonly sizes: Float32Array;
  readonly signed: boolean;
}

/** Square roots, as of weights. */
const PLAIN: Code = {
  parts: WEIGHT,
  levels: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  sizes: WEIGHT,
  signed: false,
};

/** 128 is none; 1 and 255 are the largest sizes. */
const SIGNED: Code = {
  parts: Float32Array.from({ length: 256 }, (_, byte) => Math.max(-1, (byte - 128) / 127)),
  levels: Uint8Array.from({ length: 256 }, (_, byte) => Math.min(127, Math.abs(byte - 128))),
  sizes: Float32Array.from({ length: 256 }, (_, level) => Math.min(1, level / 127)),
  signed: true,
};

/** A number for each head, query and key: weights, or another quantity in their place. */
export interface LayerValues extends LayerWeights {
  /** How bytes stand for values; as those of weights where absent. */
  readonly code?: Code;
  /** The value of a head that is stored as largest size; 1 where absent. */
  top?(head: number): number;
  /** The rows sum to anything, so that each counts alike where shares are told; else their sums are masses. */
  readonly free?: boolean;
}

export function codeOf({ code }: LayerValues): Code {
  return code ?? PLAIN;
}

export function topOf(values: LayerValues, head: number): number {
  return values.top?.(head) ?? 1;
}

/** The scores of a layer; -Infinity in a row where the query may not look. */
export function scoreValues(parts: ScoreParts): LayerValues {
  const { heads, queries, keys } = parts;
  const worked = once((head) => {
    const scores = new Float32Array(queries * keys);
    for (let query = 0; query < queries; query++) {
      scoreRow(parts, head, query, scores.subarray(query * keys, (query + 1) * keys));
    }
    return signedBytes(scores);
  });
  return {
    heads,
    queries,
    keys,
    code: SIGNED,
    free: true,
    top: (head) => worked(head).top,
    bytes: (head) => worked(head).bytes,
    row: (head, query) => scoreRow(parts, head, query),
    column: (head, key) => Float32Array.from({ length: queries }, (_, query) => scoreAt(parts, head, query, key)),
  };
}

/** Weights times the length of what each key's value adds, axes head, key: on one scale for all heads of the layer. */
export function contributionValues(weights: LayerWeights, norms: Float32Array): LayerValues {
  const { heads, queries, keys } = weights;
  const longest = largest(norms) || 1;
  const bytes = once((head) => {
    const of = weights.bytes(head);
    const made = new Uint8Array(of.length);
    for (let at = 0; at < of.length; at++) {
      made[at] = toByte((WEIGHT[of[at]] * norms[head * keys + (at % keys)]) / longest);
    }
    return made;
  });
  return {
    heads,
    queries,
    keys,
    free: true,
    top: () => longest,
    bytes,
    row: (head, query) => weights.row(head, query).map((weight, key) => weight * norms[head * keys + key]),
  };
}

/** A quantity that is there as numbers, axes head, query, key: on one scale for all heads. */
export function arrayValues(numbers: Float32Array, shape: WeightShape, signed: boolean): LayerValues {
  const { queries, keys } = shape;
  const size = queries * keys;
  const most = largest(numbers) || 1;
  const of = (head: number) => numbers.subarray(head * size, (head + 1) * size);
  return {
    ...shape,
    ...(signed && { code: SIGNED }),
    free: true,
    top: () => most,
    bytes: once((head) =>
      signed ? signedBytes(of(head), most).bytes : Uint8Array.from(of(head), (value) => toByte(value / most)),
    ),
    row: (head, query) => of(head).slice(query * keys, (query + 1) * keys),
  };
}

export function signedBytes(values: Float32Array, top = largest(values)): { bytes: Uint8Array; top: number } {
  const bytes = Uint8Array.from(values, (value) => (Number.isFinite(value) ? signedByte(value, top) : 128));
  return { bytes, top };
}

/** The largest size of a number that is finite. */
export function largest(values: Iterable<number>): number {
  let most = 0;
  for (const value of values) if (Number.isFinite(value) && Math.abs(value) > most) most = Math.abs(value);
  return most;
}

// How often the even share a weight is: the share that each key would get if a query gave the same to all it sees.

/**
 * What even attention gives, as the weights of one head.
 *
 * Where weights came as bytes it is rounded as they are, so that an even head has exactly its even share.
 */
export function evenWeights(
  visible: Visible | null,
  { queries, keys }: Pick<LayerWeights, "queries" | "keys">,
  rounded: boolean,
): LayerWeights {
  const shares = Float32Array.from({ length: queries }, (_, query) => {
    let seen = 0;
    eachRun(visible, query, keys, (start, end) => {
      seen += end - start;
    });
    const share = seen && 1 / seen;
    return rounded ? WEIGHT[toByte(share)] : share;
  });
  const row = (_: number, query: number) => {
    const values = new Float32Array(keys);
    eachRun(visible, query, keys, (start, end) => values.fill(shares[query], start, end));
    return values;
  };
  return { heads: 1, queries, keys, row, bytes: bytesOfRows({ queries, keys, row }) };
}

/** What even attention gives to each key, as mean over the queries and of bytes, as `received` tells it of a head. */
export function evenReceived(even: LayerValues, mask: Mask): Float32Array {
  const sums = new Float32Array(even.keys);
  for (let query = 0; query < even.queries; query++) {
    if (!mask.query[query]) continue;
    const row = even.row(0, query);
    for (let key = 0; key < sums.length; key++) if (mask.key[key]) sums[key] += WEIGHT[toByte(row[key])] / even.queries;
  }
  return sums;
}

export function liftOf(weight: number, even: number): number {
  return even > 0 ? weight / even : 0;
}

/** How often the even share has the full colour: as often as one key can have it, from 8 to 64 times. */
export function topLift(keys: number): number {
  return Math.min(64, Math.max(8, keys));
}

/** Multiples as bytes on a scale of doublings: up to the even share nothing, from `top` times on the last. */
export function liftByte(lift: number, top: number): number {
  return lift > 1 ? Math.min(255, Math.round((255 * Math.log2(lift)) / Math.log2(top))) : 0;
}

/** The weights of one head, or the mean of several, as bytes of their multiples. */
export function liftTile({ bytes, rows, columns, top: most }: Tile, even: LayerValues): Tile {
  const top = topLift(columns);
  const made = new Uint8Array(rows * columns);
  for (let query = 0; query < rows; query++) {
    const shares = even.row(0, query);
    for (let key = 0, at = query * columns; key < columns; key++, at++) {
      if (bytes[at] > 0) made[at] = liftByte(liftOf(WEIGHT[bytes[at]] * most, WEIGHT[toByte(shares[key])]), top);
    }
  }
  return { bytes: made, rows, columns, top };
}

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
  const used = tokens.filter((token) => mask[side][token]);
  const parts = pinned === "sum" ? 1 : used.length;
  const sum = new Float32Array(count);
  for (const token of used) {
    const values = side === "query" ? weights.row(head, token) : columnOf(weights, head, token);
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

/** Which pieces make a word. */
export interface Merge {
  /** The word of each piece. */
  readonly wordOf: readonly number[];
  /** First piece of each word, and how many pieces there are in the end. */
  readonly starts: readonly number[];
}

export function mergeOf({ continues }: PageTokens): Merge {
  const starts: number[] = [];
  const wordOf = continues.map((goesOn, piece) => {
    if (!goesOn || piece === 0) starts.push(piece);
    return starts.length - 1;
  });
  return { wordOf, starts: [...starts, continues.length] };
}

/** The words as tokens. */
export function mergedTokens(tokens: PageTokens, { wordOf, starts }: Merge): PageTokens {
  const words = starts.slice(0, -1);
  const names = tokens.words ?? tokens.labels;
  return {
    ...tokens,
    pieces: names,
    labels: names,
    continues: words.map(() => false),
    special: words.map((piece) => tokens.special[piece]),
    segments: words.map((piece) => tokens.segments[piece]),
    ...(tokens.written !== undefined && { written: wordOf[tokens.written] }),
    ...(tokens.areas && { areas: words.map((piece) => tokens.areas?.[piece] ?? "") }),
    ...(tokens.runs && {
      runs: tokens.runs.map(([first, stop, ...picture]) => [wordOf[first], (wordOf[stop - 1] ?? -1) + 1, ...picture]),
    }),
  };
}

/**
 * The values between words: the sum over the word that is looked at, the mean over the word that looks; of scores, which
 * do not add up, the mean over both, without pairs that may not be seen.
 */
export function mergedValues(values: LayerValues, of: Readonly<Record<Side, Merge>>, scores = false): LayerValues {
  const [queries, keys] = [of.query.starts.length - 1, of.key.starts.length - 1];
  const row = (head: number, word: number) => {
    const [from, to] = [of.query.starts[word], of.query.starts[word + 1]];
    const [sums, counts] = [new Float32Array(keys), new Uint32Array(keys)];
    for (let piece = from; piece < to; piece++) {
      values.row(head, piece).forEach((value, key) => {
        if (!Number.isFinite(value)) return;
        sums[of.key.wordOf[key]] += value;
        counts[of.key.wordOf[key]]++;
      });
    }
    if (scores) return sums.map((sum, key) => (counts[key] ? sum / counts[key] : Number.NEGATIVE_INFINITY));
    return sums.map((sum) => sum / (to - from));
  };
  return fromRows(values, { queries, keys, row });
}

type Made = Pick<LayerValues, "queries" | "keys" | "row">;

/** Values of which only rows are worked out; their bytes are made of these. */
function fromRows(like: LayerValues, made: Made): LayerValues {
  const { signed } = codeOf(like);
  const worked = once((head) => {
    const all = new Float32Array(made.queries * made.keys);
    for (let query = 0; query < made.queries; query++) all.set(made.row(head, query), query * made.keys);
    if (signed) return signedBytes(all);
    // Weights are parts of 1; other sums may be larger than any of what they are sums of.
    const top = like.top ? Math.max(topOf(like, head), largest(all)) : 1;
    return { bytes: Uint8Array.from(all, (value) => toByte(value / top)), top };
  });
  return {
    heads: like.heads,
    ...made,
    ...(like.code && { code: like.code }),
    ...(like.free && { free: true }),
    ...(like.top && { top: (head: number) => worked(head).top }),
    bytes: (head) => worked(head).bytes,
  };
}

const MOST_ROWS = 192;
const MOST_PAIRS = 60_000;

type Row = (row: number) => Float32Array;

/**
 * Compares two quantities over evenly spaced rows, so many of `rows`; pairs where one is not finite do not count.
 *
 * The part of them whose strongest key is the same, and the mean of their rank correlations (Spearman), of those rows
 * where it is defined; NaN where there is none.
 */
export function agreement(one: Row, other: Row, rows: number) {
  const count = Math.min(rows, MOST_ROWS);
  let [compared, same, ranked, sum] = [0, 0, 0, 0];
  for (let at = 0; at < count; at++) {
    const row = Math.floor((at * rows) / count);
    const [a, b] = [one(row), other(row)];
    const pairs = [...a.keys()].filter((key) => Number.isFinite(a[key]) && Number.isFinite(b[key]));
    if (pairs.length === 0) continue;
    compared++;
    if (topKey(a, pairs) === topKey(b, pairs)) same++;
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

function topKey(row: Float32Array, pairs: readonly number[]): number {
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
