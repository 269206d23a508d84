import { parseHex, textOn } from "../draw/color";
import { NumbersField } from "./NumbersField";

interface HeadChipsProps {
  colors: readonly string[];
  /** The number of each head in the model. */
  numbers: readonly number[];
  /** Which are on, by their place. */
  on: readonly number[];
  onToggle: (head: number) => void;
  onSolo: (head: number) => void;
  /** These heads, by their number; all where there is none. */
  onChoose: (heads: readonly number[]) => void;
}

/** With more heads than this only chosen ones have a button, and a field takes numbers. */
export const MOST_CHIPS = 32;

/** One button for each head, in its colour; of many heads for each that is chosen. */
export function HeadChips({ colors, numbers, on, onToggle, onSolo, onChoose }: HeadChipsProps) {
  const all = on.length === colors.length;
  const many = colors.length > MOST_CHIPS;
  const places = many ? (all ? [] : on.slice(0, MOST_CHIPS)) : [...colors.keys()];
  return (
    <div class="chips" role="group" aria-label="Heads">
      {many && (
        <NumbersField
          label="heads"
          title={`Which of the heads ${numbers[0]} to ${numbers[numbers.length - 1]}, such as 3, 17, 20-25; empty for all`}
          known={numbers}
          chosen={all ? [] : on.map((place) => numbers[place])}
          placeholder={`all ${numbers.length}`}
          onChoose={onChoose}
        />
      )}
      {places.map((index) => (
        <button
          key={String(index)}
          class="chip"
          data-head={numbers[index]}
          aria-pressed={on.includes(index)}
          aria-label={`Head ${numbers[index]}`}
          title={chipHint(numbers[index], on.length === 1 && on[0] === index)}
          style={{ "--color": colors[index], "--on-color": textOn(parseHex(colors[index])) }}
          onClick={(event) => (event.shiftKey ? onSolo(numbers[index]) : onToggle(numbers[index]))}
          onDblClick={() => onSolo(numbers[index])}
        >
          {numbers[index]}
        </button>
      ))}
      {many && !all && on.length > MOST_CHIPS && <small class="view-note">and {on.length - MOST_CHIPS} more</small>}
      <button class="quiet" data-all-heads disabled={all} onClick={() => onChoose([])}>
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
