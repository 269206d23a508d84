import type { ComponentChildren } from "preact";

interface CheckProps {
  /** The attribute by which it is found: "data-…". */
  name: string;
  checked: boolean;
  title?: string;
  label: ComponentChildren;
  /** What stands after the label. */
  children?: ComponentChildren;
  onChange: (checked: boolean) => void;
}

/** A box to tick, with its words. */
export function Check({ name, checked, title, label, children, onChange }: CheckProps) {
  return (
    <label class="choice row muted" title={title}>
      <input
        type="checkbox"
        {...{ [name]: "" }}
        checked={checked}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
      {children}
    </label>
  );
}
