import { useSignal } from "@preact/signals";
import { numberList, readNumberList } from "../state/numbers";
import { TypedField } from "./TypedField";

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
    <TypedField
      mark={{ "data-numbers": label }}
      label={label}
      title={title}
      placeholder={placeholder}
      value={numberList(chosen)}
      wrong={wrong.value}
      onTake={(text) => {
        const numbers = readNumberList(text, known);
        wrong.value = numbers === null || (numbers.length === 0 && text.trim() !== "");
        if (!wrong.value) onChoose(numbers ?? []);
        return !wrong.value;
      }}
    />
  );
}
