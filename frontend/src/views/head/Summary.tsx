import { FEW_QUERIES } from "../../state/places";
import { isShare } from "../../state/quantity";
import type { Store } from "../../state/store";
import { amount, counted, percent } from "../../state/words";

/** What a share is told of. */
function massWord({ name, label, signed }: Store["quantity"]["value"]): string {
  return name === "weight" ? "attention" : signed ? `${label}s’ sizes` : label;
}

/** How much of the attention the picture shows. */
export function Summary({ store }: { store: Store }) {
  const { lines, part } = store.summary.value;
  const above = isShare(store.quantity.value) ? " above even" : "";
  return (
    <span class="summary" data-summary>
      {store.stack.value.query.labels.length >= FEW_QUERIES
        ? "point at a token for its lines"
        : `${counted(lines, "line")}${above} · ${percent(part)} of the ${massWord(store.quantity.value)}`}
    </span>
  );
}

/** What stands above the keys, and what their strips are. */
export function NormName({ store, received = false }: { store: Store; received?: boolean }) {
  const norms = store.valueNorms.value;
  if (!norms) return <span title="share that each gets">to (key){received && <small> · share</small>}</span>;
  return (
    <span title="Norm of what a key adds at weight 1, mean of the chosen heads">
      to (key) <small data-norm-name>value norm, up to {amount(norms.most)}</small>
    </span>
  );
}

/** Says when a query's weights do not sum to 1. */
export function SinkNote({ store }: { store: Store }) {
  const layer = store.shown.value?.layer;
  if (layer?.row_sums !== "less") return null;
  return (
    <p class="note" data-sink-note>
      {layer.not_kept === undefined
        ? "Rows sum to less than 1: the rest went to a learned sink, no token."
        : `Not kept: on average ${percent(layer.not_kept)} of each query’s weight, cut before.`}
    </p>
  );
}
