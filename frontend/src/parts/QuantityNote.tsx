import { useComputed } from "@preact/signals";
import { agreement } from "../draw/agreement";
import { eachRun, type Visible } from "../draw/scores";
import { sharedTop } from "../draw/values";
import type { LayerWeights } from "../draw/weights";
import { hasQuantity, valueText } from "../state/quantity";
import type { Store } from "../state/store";
import { counted, percent, shortWeight } from "../state/words";

/** Of a comparison: how these rank keys says nothing of the weights. */
const OF_TWO = ["difference", "effect"];

/** What is shown in place of the weights: what it is, its scale, and how far it agrees with the weights. */
export function QuantityNote({ store }: { store: Store }) {
  const facts = store.quantity.value;
  const wanted = store.selection.value.quantity;
  const shown = store.shown.value;
  if (shown && !hasQuantity(shown.layer, wanted)) {
    const label = store.quantities.value.find(({ name }) => name === wanted)?.label ?? wanted;
    return (
      <p class="note" data-quantity-note>
        This layer has no {label}: weights are shown.
      </p>
    );
  }
  if (facts.name === "weight") return null;
  return (
    <p class="note" data-quantity-note>
      <b>{facts.label}</b>: {facts.explanation}
      {facts.per === "layer" && ", all heads together"}. {store.view.value === "head" && scaleOf(store)}{" "}
      {!(store.stack.value.moved && OF_TWO.includes(facts.name)) && <AgreementLine store={store} />}
    </p>
  );
}

/** What the strength and the colour of lines mean. */
function scaleOf({ values, maps, quantity }: Store): string {
  if (!values.value) return "";
  const { signed, per } = quantity.value;
  const text = valueText(quantity.value);
  const top = text(sharedTop(values.value, maps.value));
  const colours = signed ? "Lines: blue above 0, orange below, strength" : "Lines: strength";
  const shared = per === "head" && maps.value.length > 1 ? ", one scale for these heads" : "";
  return `${colours} by size up to ${top}${shared}; in the share drawn each query counts alike.`;
}

/** How far the quantity and the weights of the chosen heads agree on this text. */
function AgreementLine({ store }: { store: Store }) {
  const found = useComputed(() => {
    const [shown, values, heads] = [store.shown.value, store.values.value, store.heads.value];
    if (!shown || !values) return null;
    const { weights, visible } = shown;
    if (store.quantity.value.per === "layer") {
      return agreement(
        (query) => seenOf(meanRow(weights, heads, query), visible, query),
        (query) => values.row(0, query),
        weights.queries,
      );
    }
    const place = (row: number) => [heads[Math.floor(row / weights.queries)], row % weights.queries] as const;
    return agreement(
      (row) => seenOf(weights.row(...place(row)), visible, place(row)[1]),
      (row) => values.row(...place(row)),
      weights.queries * heads.length,
    );
  });
  const { value } = found;
  if (!value) return null;
  const { length } = store.heads.value;
  const of = store.quantity.value.per === "layer" ? `the mean of ${counted(length, "head")}` : counted(length, "head");
  const rank = Number.isFinite(value.rank) ? signed(value.rank) : "undefined";
  return (
    <span data-agreement>
      Against the weights of {of} in layer {store.layerNumber} on this text: same top key in {percent(value.sameTop)} of{" "}
      {counted(value.rows, "row")}, mean rank correlation {rank}.
    </span>
  );
}

/** A row with NaN where the query may not look: such pairs would always agree. */
function seenOf(row: Float32Array, visible: Visible | null, query: number): Float32Array {
  const seen = new Float32Array(row.length).fill(Number.NaN);
  eachRun(visible, query, row.length, (start, end) => seen.set(row.subarray(start, end), start));
  return seen;
}

/** The weights of a query as mean over the chosen heads. */
function meanRow(weights: LayerWeights, heads: readonly number[], query: number): Float32Array {
  const rows = heads.map((head) => weights.row(head, query));
  return rows[0].map((_, key) => rows.reduce((sum, row) => sum + row[key], 0) / rows.length);
}

function signed(value: number): string {
  return `${value < 0 ? "−" : ""}${shortWeight(Math.abs(value))}`;
}
