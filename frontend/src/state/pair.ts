import { scoreAt } from "../draw/scores";
import type { Store } from "./store";

/** Weight (mean of the chosen heads) and score (of the first one) of the pair that is looked at. */
export function pairValues(store: Store): { weight: number; score: number | null } | null {
  const { query, key } = store.pair.value;
  const [shown, weights, heads] = [store.shown.value, store.weights.value, store.heads.value];
  if (!shown || !weights || query === null || key === null) return null;
  if (query >= weights.queries || key >= weights.keys) return null;
  const sum = heads.reduce((total, head) => total + weights.row(head, query)[key], 0);
  return { weight: sum / heads.length, score: shown.scores && scoreAt(shown.scores, heads[0], query, key) };
}
