import { scoreAt } from "../draw/scores";
import type { Store } from "./store";

/** What the pair that is looked at has, in the shown head; null for what is not known. */
export function pairValues(
  store: Store,
): { weight: number; even: number; score: number | null; value: number | null } | null {
  const { query, key } = store.pair.value;
  const [shown, weights, head] = [store.shown.value, store.weights.value, store.head.value];
  const even = store.even.value;
  if (!shown || !weights || !even || query === null || key === null) return null;
  if (query >= weights.queries || key >= weights.keys) return null;
  const { scores } = shown;
  const values = store.values.value;
  return {
    weight: weights.row(head, query)[key],
    even: even.row(0, query)[key],
    score: scores && scoreAt(scores, head, query, key),
    value: values ? values.row(store.map.value, query)[key] : null,
  };
}
