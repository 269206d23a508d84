import type { ComponentChildren, ComponentProps } from "preact";
import { CHOICES } from "../../contract/values";
import type { Store } from "../state/store";

/** A button without a frame. */
export function Quiet(props: Omit<ComponentProps<"button">, "ref">) {
  return <button {...props} class="quiet muted" />;
}

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

type Options = "filter" | "pinned" | "neurons" | "quantity";
type Given = Pick<ChoiceProps<string>, "label" | "silent" | "title" | "name" | "words"> & {
  options?: readonly string[];
};

/** A menu of what an option of the page may be: all of it where nothing else is given. */
export function OptionChoice({ store, option, ...given }: Given & { store: Store; option: Options }) {
  return (
    <Choice
      options={option === "quantity" ? [] : CHOICES[option]}
      {...given}
      chosen={store.selection.value[option]}
      onChoose={(chosen) => store.choose({ [option]: chosen })}
    />
  );
}

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
    <div
      class="segmented flex"
      role="tablist"
      aria-label={label}
      onKeyDown={(event) => walkTiles(event, options.length, "[role=tab]")?.click()}
    >
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

/** Arrows go from tile to tile, of which Tab reaches one; gives the tile that one led to. */
export function walkTiles(
  event: KeyboardEvent & { currentTarget: HTMLElement },
  columns: number,
  tile = "[data-tile]",
): HTMLElement | undefined {
  const [down, right] = ARROWS[event.key] ?? [0, 0];
  const tiles = [...event.currentTarget.querySelectorAll<HTMLElement>(tile)];
  const now = tiles.indexOf(event.target as HTMLElement);
  if (now < 0 || (down === 0 && right === 0)) return undefined;
  event.preventDefault();
  const next = tiles[now + down * columns + right];
  next?.focus();
  return next;
}

/** Where the arrow keys lead in a grid: so many rows down and columns to the right. */
export const ARROWS: Readonly<Record<string, readonly [rows: number, columns: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};
