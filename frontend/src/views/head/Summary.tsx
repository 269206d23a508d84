import type { Store } from "../../state/store";
import { amount, counted, percent } from "../../state/words";

/** What a share is told of. */
function massWord({ name, label, signed }: Store["quantity"]["value"]): string {
  return name === "weight" ? "attention" : signed ? `${label}s’ sizes` : label;
}

/** How much of the attention the picture shows. */
export function Summary({ store }: { store: Store }) {
  const { lines, part } = store.summary.value;
  return (
    <span class="summary" data-summary>
      {counted(lines, "line")} · {percent(part)} of the {massWord(store.quantity.value)}
    </span>
  );
}

/** What stands above the keys, and what their strips are. */
export function NormName({ store }: { store: Store }) {
  const norms = store.valueNorms.value;
  if (!norms) return <span>to (key)</span>;
  return (
    <span title="Length of what a key adds when it has all the weight, mean of the chosen heads">
      to (key) <small data-norm-name>‖f(x)‖ ≤ {amount(norms.most)}</small>
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
