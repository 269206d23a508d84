import { useComputed } from "@preact/signals";
import { agreement } from "../draw/agreement";
import { scoreRow } from "../draw/scores";
import type { Store } from "../state/store";
import { counted, percent, shortWeight } from "../state/words";

/** How far scores and weights of the first chosen head agree on this text. */
export function AgreementLine({ store }: { store: Store }) {
  const found = useComputed(() => {
    const [shown, weights, head] = [store.shown.value, store.weights.value, store.heads.value[0]];
    if (!shown?.scores || !weights) return null;
    const { scores } = shown;
    return agreement(
      (query) => weights.row(head, query),
      (query) => scoreRow(scores, head, query),
      weights.queries,
    );
  });
  const { value } = found;
  if (!value) return null;
  const number = store.shown.value?.stack.head_numbers[store.heads.value[0]];
  const rank = Number.isFinite(value.rank) ? signed(value.rank) : "undefined";
  return (
    <p class="note" data-agreement>
      Weight and score of head {number} on this text: same top key for {percent(value.sameTop)} of{" "}
      {counted(value.queries, "query").replace("querys", "queries")}, rank correlation {rank} over their pairs.
    </p>
  );
}

function signed(value: number): string {
  return `${value < 0 ? "−" : ""}${shortWeight(Math.abs(value))}`;
}
