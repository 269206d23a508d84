interface SegmentedProps {
  label: string;
  options: readonly string[];
  /** What an option says where that is not its name. */
  labels?: Readonly<Record<string, string>>;
  chosen: string;
  /** They are tabs of what has this id: one Tab stop, arrows go from one to the next. */
  tabsOf?: string;
  onChoose: (option: string) => void;
}

/** A few options beside each other, one of which is chosen. */
export function Segmented({ label, options, labels = {}, chosen, tabsOf, onChoose }: SegmentedProps) {
  const buttons = options.map((option) => (
    <button
      key={option}
      data-option={option}
      {...(tabsOf ? tabOf(tabsOf, option === chosen) : { "aria-pressed": option === chosen })}
      onClick={() => onChoose(option)}
    >
      {Object.hasOwn(labels, option) ? labels[option] : option}
    </button>
  ));
  return tabsOf ? (
    <div class="segmented flex" role="tablist" aria-label={label} onKeyDown={walk}>
      {buttons}
    </div>
  ) : (
    <div class="segmented flex" role="group" aria-label={label}>
      {buttons}
    </div>
  );
}

function tabOf(panel: string, chosen: boolean) {
  return { role: "tab", "aria-selected": chosen, "aria-controls": panel, tabIndex: chosen ? 0 : -1 } as const;
}

function walk(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
  const next = step && tabs[tabs.indexOf(event.target as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.click();
}
