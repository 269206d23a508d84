import { scoreAt } from "../draw/scores";
import type { LayerWeights } from "../draw/weights";
import type { Store } from "./store";

/** What the pair that is looked at has: value and weight as mean of the chosen heads, score of the first one. */
export function pairValues(store: Store): { weight: number; score: number | null; value: number | null } | null {
  const { query, key } = store.pair.value;
  const [shown, weights, heads] = [store.shown.value, store.weights.value, store.heads.value];
  if (!shown || !weights || query === null || key === null) return null;
  if (query >= weights.queries || key >= weights.keys) return null;
  const [values, maps] = [store.values.value, store.maps.value];
  const mean = (of: LayerWeights, places: readonly number[]) =>
    places.reduce((sum, head) => sum + of.row(head, query)[key], 0) / places.length;
  return {
    weight: mean(weights, heads),
    score: shown.scores && scoreAt(shown.scores, heads[0], query, key),
    value: values && mean(values, maps),
  };
}
