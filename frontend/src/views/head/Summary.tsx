import type { Store } from "../../state/store";
import { counted, percent } from "../../state/words";

/** How much of the attention the picture shows. */
export function Summary({ store }: { store: Store }) {
  const { lines, part } = store.summary.value;
  return (
    <span class="summary" data-summary>
      {counted(lines, "line")} · {percent(part)} of the attention
    </span>
  );
}

/** Says when a query's weights do not sum to 1. */
export function SinkNote({ store }: { store: Store }) {
  if (store.shown.value?.layer.row_sums !== "less") return null;
  return (
    <p class="note" data-sink-note>
      Weights of a query sum to less than 1 here: the rest went to a learned sink that is no token.
    </p>
  );
}
