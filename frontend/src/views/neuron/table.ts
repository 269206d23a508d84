import {
  added,
  addedOverall,
  byPair,
  carried,
  keyOf,
  queryOf,
  ranked,
  type ScoreParts,
  scoreRow,
} from "../../draw/scores";
import type { Side } from "../../draw/tokens";
import { largest } from "../../draw/values";
import { numbersOf } from "../../state/kinds";
import type { Selection } from "../../state/selection";
import type { Shown, Store } from "../../state/store";
import { wordParts } from "../../state/store/chosen";

export type Order = Selection["neurons"];

/** What the neurons of one head make of one query. */
export type NeuronTable = NonNullable<ReturnType<typeof neuronTable>>;

/** The two words that the head joins most. */
export function joinedWords({ kinds, full, wordsAt }: Store): Record<Side, number> {
  const of = kinds.value && numbersOf(kinds.value, full.value);
  const at = (side: Side) => wordsAt(side, [Math.max(0, of?.(`link_${side}`) || 0)])[0];
  return { query: at("query"), key: at("key") };
}

/** The query that is looked at where none is pinned or pointed at: of the two words that are joined most. */
export function queryShown(store: Store): number {
  return store.pair.value.query ?? joinedWords(store).query;
}

/** The queries and keys that a table is of: those of the layer, or of words the means over their pieces. */
function partsOf({ scores, pieces }: Shown, head: number): readonly [parts: ScoreParts, part: number] | null {
  if (scores) return [scores, head];
  return pieces?.scores ? [wordParts(pieces.scores, head, pieces.of), 0] : null;
}

/** The table of the shown head and a query; null where the page holds no neurons. */
export function neuronTable(store: Store, order: Order, wanted: number) {
  const [shown, head] = [store.shown.value, store.head.value];
  const [parts, part] = (shown && partsOf(shown, head)) ?? [];
  if (!shown || !parts || part === undefined) return null;
  const query = Math.min(parts.queries - 1, wanted);
  const q = queryOf(parts, part, query);
  const keys = [...Array(parts.keys).keys()];
  const dots = Float32Array.from(keys, (key) => keyOf(parts, part, key).reduce((sum, k, i) => sum + k * q[i], 0));
  const scores = shown.values.get("score")?.row(head, query) ?? scoreRow(parts, part, query);
  const weights = shown.weights.row(head, query);
  const overall = addedOverall(parts, part, query, weights);
  const biggest = ranked(overall);
  const rotary = shown.layer.rotary;
  const ordered =
    order === "ranked" ? biggest : order === "pairs" && rotary ? byPair(rotary, parts.features) : [...q.keys()];
  const productAt = (key: number) => added(parts, part, query, key);
  const further =
    store.quantity.value.name === "weight"
      ? null
      : (store.values.value?.row(store.quantity.value.per === "layer" ? 0 : head, query) ?? null);
  const keyMost = keys.map((key) => largest(keyOf(parts, part, key)));
  const most = {
    q: largest(q),
    k: Math.max(...keyMost),
    product: Math.max(...keys.map((key) => largest(productAt(key)))),
    dot: largest(dots),
    further: largest(further ?? []),
  };
  return {
    head,
    /** Queries and keys, and which head of them is looked at. */
    parts,
    part,
    query,
    features: parts.features,
    q,
    /** The features as they stand beside each other. */
    order: ordered,
    keyAt: (key: number) => keyOf(parts, part, key),
    /** q × k × scale: what each neuron adds to the score of a key. */
    productAt,
    /** q . k of each key, before anything else. */
    dots,
    /** After scale, cap and bias; -Infinity where the query may not look. */
    scores,
    weights,
    /** What is shown in place of the weights, of each key; null for weights. */
    further,
    /** Largest sizes, for the scales of the columns. */
    most,
    /** What each neuron adds to what sets the attended keys apart. */
    overall,
    /** For each count m: the part that the first m neurons by size carry. */
    carried: carried(overall, biggest),
  };
}

/** The smallest number of neurons that carry this part. */
export function countFor(part: number, carriedBy: readonly number[]): number {
  return carriedBy.findIndex((value) => value >= part - 1e-9) + 1;
}
