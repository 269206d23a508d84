import type { Side } from "../draw/place";
import type { Store } from "./store";

/** The pinned pair; what is not pinned is the last query, and the key it attends to most. */
export function chosenPair(store: Store): Record<Side, number> | null {
  const [weights, pins] = [store.weights.value, store.pins.value];
  const { query: queries } = store.stack.value;
  if (!weights || store.shownStack.value !== store.stack.value) return null;
  const query = pins.query[0] ?? queries.labels.length - 1;
  const sums = new Float32Array(weights.keys);
  for (const head of store.heads.value) {
    weights.row(head, query).forEach((weight, key) => {
      sums[key] += weight;
    });
  }
  return { query, key: pins.key[0] ?? sums.indexOf(Math.max(...sums)) };
}
