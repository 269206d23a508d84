import { useComputed } from "@preact/signals";
import { eachRun, type Visible } from "../draw/scores";
import { agreement, topOf } from "../draw/values";
import { headName } from "../state/evidence";
import { hasQuantity, valueText } from "../state/quantity";
import type { View } from "../state/selection";
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
      <p class="note muted" data-quantity-note>
        This layer has no {label}: weights are shown.
      </p>
    );
  }
  if (facts.name === "weight") return null;
  return (
    <p class="note muted" data-quantity-note>
      <b>{facts.label}</b>: {facts.explanation}
      {facts.per === "layer" && ", all heads together"}. {store.view.value === "head" && scaleOf(store)}{" "}
      {!(store.stack.value.moved && OF_TWO.includes(facts.name)) && <AgreementLine store={store} />}
    </p>
  );
}

/** What the strength and the colour of lines mean. */
function scaleOf({ values, map, quantity }: Store): string {
  if (!values.value) return "";
  const top = valueText(quantity.value)(topOf(values.value, map.value));
  const colours = quantity.value.signed ? "Lines: blue above 0, orange below, strength" : "Lines: strength";
  return `${colours} by size up to ${top}; in the share drawn each query counts alike.`;
}

/** How far the quantity and the weights of the shown head agree on this text. */
function AgreementLine({ store }: { store: Store }) {
  const found = useComputed(() => {
    const [shown, values] = [store.shown.value, store.values.value];
    if (!shown || !values) return null;
    const { weights, visible } = shown;
    return agreement(
      (query) => seenOf(weights.row(store.head.value, query), visible, query),
      (query) => values.row(store.map.value, query),
      weights.queries,
    );
  });
  const { value } = found;
  if (!value) return null;
  const rank = Number.isFinite(value.rank) ? signed(value.rank) : "undefined";
  return (
    <span data-agreement>
      Against the weights of head {headName({ stack: store.stack.value }, store.full.value)} on this text: same top key
      in {percent(value.sameTop)} of {counted(value.rows, "row")}, mean rank correlation {rank}.
    </span>
  );
}

/** A row with NaN where the query may not look: such pairs would always agree. */
function seenOf(row: Float32Array, visible: Visible | null, query: number): Float32Array {
  const seen = new Float32Array(row.length).fill(Number.NaN);
  eachRun(visible, query, row.length, (start, end) => seen.set(row.subarray(start, end), start));
  return seen;
}

function signed(value: number): string {
  return `${value < 0 ? "−" : ""}${shortWeight(Math.abs(value))}`;
}

/** What is measured on pieces, or what of a view follows from their words in another way. */
const FURTHER: { readonly [Of in View]?: string } = {
  overview: " Descriptions of heads and the ten numbers are of the pieces.",
  neuron:
    " Its query and key are means over its pieces, q · k and the score over their pairs; the softmax is the sum and mean of the weights.",
};

/** Where pieces are joined: how. */
export function WordsNote({ store }: { store: Store }) {
  return store.merged.value ? (
    <p class="note muted" data-words-note>
      Whole words: a word gets the sum of what its pieces get, and gives the mean of what they give.
      {FURTHER[store.view.value]}
    </p>
  ) : null;
}
