import type { Store } from "../state/store";
import { Segmented } from "./Segmented";

/** Quantities whose names have more letters than this do not stand beside each other. */
const MOST_BESIDE = 48;

/** Which quantity is shown: all beside each other where there is room, else in a menu. */
export function QuantityChoice({ store: { quantities, selection, select } }: { store: Store }) {
  if (quantities.value.reduce((letters, { label }) => letters + label.length, 0) > MOST_BESIDE) {
    return (
      <label class="choice">
        <span>show</span>
        <select
          data-quantities
          aria-label="Quantity"
          value={selection.value.quantity}
          onChange={(event) => {
            const quantity = event.currentTarget.value;
            select((now) => ({ ...now, quantity }));
          }}
        >
          {quantities.value.map(({ name, label, explanation }) => (
            <option key={name} value={name} title={explanation}>
              {label}
            </option>
          ))}
        </select>
      </label>
    );
  }
  const labels = Object.fromEntries(quantities.value.map(({ name, label }) => [name, label]));
  return (
    <Segmented
      label="Quantity"
      options={Object.keys(labels)}
      labels={labels}
      chosen={selection.value.quantity}
      onChoose={(quantity) => select((now) => ({ ...now, quantity }))}
    />
  );
}
