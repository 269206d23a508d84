import { useSignal } from "@preact/signals";

interface TypedFieldProps {
  /** The attribute by which it is found, and its value. */
  mark: Readonly<Record<string, string>>;
  label: string;
  title: string;
  placeholder: string;
  /** What was taken last. */
  value: string;
  wrong: boolean;
  /** Takes what was typed, on Enter or when the field is left; false where it stays to be mended. */
  onTake: (text: string) => boolean;
}

/** A line of text that is taken once it is complete. What is typed stays until then, whatever is drawn meanwhile. */
export function TypedField({ mark, label, title, placeholder, value, wrong, onTake }: TypedFieldProps) {
  const typed = useSignal<string | null>(null);
  return (
    <label class="choice row muted" title={title}>
      <span>{label}</span>
      <input
        type="text"
        class="numbers-field"
        {...mark}
        placeholder={placeholder}
        value={typed.value ?? value}
        aria-invalid={wrong}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onChange={(event) => {
          if (onTake(event.currentTarget.value)) typed.value = null;
        }}
      />
    </label>
  );
}
