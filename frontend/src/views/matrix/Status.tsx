import { readable } from "../../state/label";
import { pairValues } from "../../state/pair";
import { toldText, valueText, WEIGHT_FACTS } from "../../state/quantity";
import type { Store } from "../../state/store";
import { signedNumber } from "../../state/words";

/** The pair that is looked at, in words. */
export function Status({ store }: { store: Store }) {
  const { query, key } = store.pair.value;
  const stack = store.shownStack.value;
  const values = pairValues(store);
  const { name, label } = store.quantity.value;
  const further = name !== "weight" && name !== "score";
  if (!stack || query === null || key === null || !values) {
    return <span class="status">Point at a cell; click to pin it, drag to move, + and − to zoom.</span>;
  }
  return (
    <span class="status" aria-live="polite" data-status>
      <bdi>{readable(stack.query.labels[query]).text}</bdi> → <bdi>{readable(stack.key.labels[key]).text}</bdi>
      <b>{toldText(WEIGHT_FACTS, stack.key.labels.length)(values.weight, values.even)}</b>
      {values.score !== null && <small>score {signedNumber(values.score)}</small>}
      {further && values.value !== null && (
        <small>
          {label} {valueText(store.quantity.value)(values.value)}
        </small>
      )}
    </span>
  );
}
