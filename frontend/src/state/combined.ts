import type { Side } from "../draw/columns";
import { type Merge, mergedValues } from "../draw/merge";
import { keyOf, queryOf } from "../draw/neurons";
import type { ScoreParts } from "../draw/scores";
import { largest } from "../draw/values";
import type { LoadedLayer } from "../source/layer";

/** Which pieces make the words of both sides. */
export type Words = Readonly<Record<Side, Merge>>;

/** A layer between words in place of pieces. */
export function joined<Layer extends LoadedLayer>(layer: Layer, of: Words): Layer {
  const values = new Map([...layer.values].map(([name, piece]) => [name, mergedValues(piece, of, name === "score")]));
  return {
    ...layer,
    values,
    weights: values.get("weight") ?? layer.weights,
    even: mergedValues(layer.even, of),
    scores: null,
    visible: null,
    valueNorms: layer.valueNorms && longestOf(layer.valueNorms, layer.weights.heads, of.key),
  };
}

/**
 * The queries and keys of one head between words: the means over their pieces, so that every product, and q . k with
 * them, is the mean over all pairs of their pieces.
 */
export function wordParts(parts: ScoreParts, head: number, of: Words): ScoreParts {
  const { features } = parts;
  const means = (
    numbersOf: (parts: ScoreParts, head: number, token: number) => Float32Array,
    { wordOf, starts }: Merge,
  ) => {
    const made = new Float32Array((starts.length - 1) * features);
    wordOf.forEach((word, piece) => {
      const share = 1 / (starts[word + 1] - starts[word]);
      numbersOf(parts, head, piece).forEach((value, feature) => {
        made[word * features + feature] += share * value;
      });
    });
    return made;
  };
  return {
    ...parts,
    heads: 1,
    kvHeads: 1,
    queries: of.query.starts.length - 1,
    keys: of.key.starts.length - 1,
    query: means(queryOf, of.query),
    key: means(keyOf, of.key),
    bias: null,
    sinks: null,
    visible: null,
  };
}

/** What a word adds at most: the longest of its pieces; axes head, key. */
function longestOf(norms: Float32Array, heads: number, { starts, wordOf }: Merge): Float32Array {
  const keys = starts.length - 1;
  return Float32Array.from({ length: heads * keys }, (_, at) => {
    const [head, word] = [Math.floor(at / keys), at % keys];
    return largest(norms.subarray(head * wordOf.length + starts[word], head * wordOf.length + starts[word + 1]));
  });
}

/** What a word that looks has with each word, of the rows of its pieces. */
export function joinedRow(
  rows: readonly ((head: number, key: number) => number | undefined)[],
  { starts }: Merge,
  scores: boolean,
) {
  return (head: number, word: number): number | undefined => {
    const pieces = Array.from({ length: starts[word + 1] - starts[word] }, (_, at) => starts[word] + at);
    const all = rows.flatMap((row) => pieces.map((key) => row(head, key)));
    const known = all.filter((value) => value !== undefined && Number.isFinite(value)) as number[];
    if (all.includes(undefined)) return undefined;
    if (scores && known.length === 0) return Number.NEGATIVE_INFINITY;
    return known.reduce((sum, value) => sum + value, 0) / (scores ? known.length : rows.length);
  };
}
