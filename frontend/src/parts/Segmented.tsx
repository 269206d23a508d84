interface SegmentedProps {
  label: string;
  options: readonly string[];
  /** What an option says where that is not its name. */
  labels?: Readonly<Record<string, string>>;
  chosen: string;
  onChoose: (option: string) => void;
}

/** A few options beside each other, one of which is chosen. */
export function Segmented({ label, options, labels = {}, chosen, onChoose }: SegmentedProps) {
  return (
    <div class="segmented" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          type="button"
          key={option}
          data-option={option}
          aria-pressed={option === chosen}
          onClick={() => onChoose(option)}
        >
          {Object.hasOwn(labels, option) ? labels[option] : option}
        </button>
      ))}
    </div>
  );
}
