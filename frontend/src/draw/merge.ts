import type { PageTokens } from "../contract/page";
import type { Side } from "./columns";
import { codeOf, type LayerValues, largest, signedBytes, topOf } from "./values";
import { once, toByte } from "./weights";

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
  const column = (head: number, word: number) =>
    Float32Array.from({ length: queries }, (_, query) => row(head, query)[word]);
  return fromRows(values, { queries, keys, row, column });
}

type Made = Pick<LayerValues, "queries" | "keys" | "row" | "column">;

/** Values of which only rows and columns are worked out; their bytes are made of these. */
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
