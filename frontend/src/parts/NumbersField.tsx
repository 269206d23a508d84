import { useSignal } from "@preact/signals";
import { numberList, readNumberList } from "../state/numbers";

interface NumbersFieldProps {
  /** What the numbers are of, in a word. */
  label: string;
  title: string;
  known: readonly number[];
  chosen: readonly number[];
  /** What stands in an empty field. */
  placeholder: string;
  onChoose: (numbers: readonly number[]) => void;
}

/** A field for numbers such as "3, 17, 20-25". */
export function NumbersField({ label, title, known, chosen, placeholder, onChoose }: NumbersFieldProps) {
  const wrong = useSignal(false);
  return (
    <label class="choice" title={title}>
      <span>{label}</span>
      <input
        type="text"
        class="numbers-field"
        data-numbers={label}
        placeholder={placeholder}
        value={numberList(chosen)}
        aria-invalid={wrong.value}
        onChange={(event) => {
          const numbers = readNumberList(event.currentTarget.value, known);
          wrong.value = numbers === null || (numbers.length === 0 && event.currentTarget.value.trim() !== "");
          if (!wrong.value) onChoose(numbers ?? []);
        }}
      />
    </label>
  );
}
