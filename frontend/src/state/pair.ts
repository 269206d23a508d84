import { scoreAt } from "../draw/scores";
import type { Store } from "./store";

/** What the pair that is looked at has, as mean of the chosen heads; null for what is not known. */
export function pairValues(
  store: Store,
): { weight: number; even: number; score: number | null; value: number | null } | null {
  const { query, key } = store.pair.value;
  const [shown, weights, heads] = [store.shown.value, store.weights.value, store.heads.value];
  const even = store.even.value;
  if (!shown || !weights || !even || query === null || key === null) return null;
  if (query >= weights.queries || key >= weights.keys) return null;
  const { scores } = shown;
  const values = store.values.value;
  return {
    weight: mean(heads, (head) => weights.row(head, query)[key]),
    even: even.row(0, query)[key],
    score: scores && mean(heads, (head) => scoreAt(scores, head, query, key)),
    value: values && mean(store.maps.value, (map) => values.row(map, query)[key]),
  };
}

function mean(places: readonly number[], of: (place: number) => number): number {
  return places.reduce((sum, place) => sum + of(place), 0) / places.length;
}
