interface ChoiceProps<Option extends string> {
  /** Stands before the menu, or only names it. */
  label: string;
  silent?: boolean;
  title?: string;
  /** The attribute by which it is found: "data-…". */
  name: string;
  options: readonly Option[];
  /** What the options are called; by themselves where not given. */
  words?: Readonly<Record<Option, string>>;
  chosen: Option;
  onChoose: (option: Option) => void;
}

/** A menu with its name. */
export function Choice<Option extends string>(given: ChoiceProps<Option>) {
  const { label, silent, title, name, options, words, chosen, onChoose } = given;
  return (
    <label class="choice row muted" title={title}>
      {!silent && <span>{label}</span>}
      <select
        {...{ [name]: "" }}
        aria-label={silent ? label : undefined}
        value={chosen}
        onChange={(event) => onChoose(event.currentTarget.value as Option)}
      >
        {options.map((option) => (
          <option key={option} value={option}>
            {words?.[option] ?? option}
          </option>
        ))}
      </select>
    </label>
  );
}
