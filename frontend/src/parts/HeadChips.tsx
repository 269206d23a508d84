import { parseHex, textOn } from "../draw/color";

interface HeadChipsProps {
  colors: readonly string[];
  on: readonly number[];
  onToggle: (head: number) => void;
  onSolo: (head: number) => void;
  onAll: () => void;
}

/** One button for each head, in its colour. */
export function HeadChips({ colors, on, onToggle, onSolo, onAll }: HeadChipsProps) {
  const all = on.length === colors.length;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a row in all browsers
    <div class="chips" role="group" aria-label="Heads">
      {colors.map((color, head) => (
        <button
          type="button"
          key={String(head)}
          class="chip"
          data-head={head}
          aria-pressed={on.includes(head)}
          aria-label={`Head ${head}`}
          title={chipHint(head, on)}
          style={{ "--color": color, "--on-color": textOn(parseHex(color)) }}
          onClick={(event) => (event.shiftKey ? onSolo(head) : onToggle(head))}
          onDblClick={() => onSolo(head)}
        >
          {head}
        </button>
      ))}
      <button type="button" class="quiet" data-all-heads disabled={all} onClick={onAll}>
        all
      </button>
    </div>
  );
}

function chipHint(head: number, on: readonly number[]): string {
  const alone = on.length === 1 && on[0] === head;
  return alone
    ? `Head ${head}: the only one shown. Double click for all heads`
    : `Head ${head}: click for on or off, double click (or shift) for only this one`;
}
