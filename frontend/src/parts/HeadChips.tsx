import { parseHex, textOn } from "../draw/color";

interface HeadChipsProps {
  colors: readonly string[];
  /** The number of each head in the model. */
  numbers: readonly number[];
  /** Which are on, by their place. */
  on: readonly number[];
  onToggle: (head: number) => void;
  onSolo: (head: number) => void;
  onAll: () => void;
}

/** One button for each head, in its colour. */
export function HeadChips({ colors, numbers, on, onToggle, onSolo, onAll }: HeadChipsProps) {
  const all = on.length === colors.length;
  return (
    <div class="chips" role="group" aria-label="Heads">
      {colors.map((color, index) => (
        <button
          type="button"
          key={String(index)}
          class="chip"
          data-head={numbers[index]}
          aria-pressed={on.includes(index)}
          aria-label={`Head ${numbers[index]}`}
          title={chipHint(numbers[index], on.length === 1 && on[0] === index)}
          style={{ "--color": color, "--on-color": textOn(parseHex(color)) }}
          onClick={(event) => (event.shiftKey ? onSolo(numbers[index]) : onToggle(numbers[index]))}
          onDblClick={() => onSolo(numbers[index])}
        >
          {numbers[index]}
        </button>
      ))}
      <button type="button" class="quiet" data-all-heads disabled={all} onClick={onAll}>
        all
      </button>
    </div>
  );
}

function chipHint(head: number, alone: boolean): string {
  return alone
    ? `Head ${head}: the only one shown. Double click for all heads`
    : `Head ${head}: click for on or off, double click (or shift) for only this one`;
}
