import { computed, type Signal, signal } from "@preact/signals-core";
import type { Side } from "../../draw/columns";
import { sourceBeside } from "../../source/beside";
import { LayerCache } from "../../source/layers";
import type { Source } from "../../source/source";
import { fitSelection, pageSelection, type Selection } from "../selection";

/** What the pointer or the keyboard is at: a token of one side, or a pair. */
export type Hover = { readonly [Of in Side]?: number };

/** What is chosen, pointed at and open: all that follows from it is worked out elsewhere. */
export type Chosen = ReturnType<typeof chosenState>;

/** Where all that is shown comes from. */
interface Origin {
  /** The source as it was given. */
  readonly given: Source;
  /** The same, or a further record of it. */
  readonly source: Source;
  readonly layers: LayerCache;
}

/** What a reader has chosen of a page, or of a further record of it that the selection names. */
export function chosenState(given: Source, wanted: Partial<Selection>, shared?: LayerCache) {
  const start = (given.root ?? given).header;
  const isRecord = (name: string, of = root.peek()) => !name || Object.hasOwn(of.beside ?? {}, name);
  const first = { ...pageSelection(start), ...wanted };
  const record = isRecord(first.shown_record, start) ? first.shown_record : "";
  const source = sourceBeside(given, record);
  // A model that answers gives one source after the other.
  const origin = signal<Origin>({ given, source, layers: shared ?? new LayerCache(source) });
  const page = computed(() => origin.value.source.header);
  const root = computed(() => (origin.value.given.root ?? origin.value.given).header);
  const selection = signal(fitSelection({ ...first, shown_record: record }, page.value, start));
  const part = <Key extends keyof Selection>(key: Key) => computed(() => selection.value[key]);
  const [view, theme] = [part("view"), part("theme")];
  const [systemDark, printing] = [signal(false), signal(false)];
  const failure = signal<unknown>(null);
  return {
    origin,
    /** The page itself, also where what is shown is a further record of it. */
    root,
    isRecord,
    /** The name of the further record that is shown; empty for the page's own. */
    record,
    page,
    selection: selection as Signal<Selection>,
    /** What is to be shown of another record, which has a state of its own. */
    elsewhere: signal<Selection | null>(null),
    part,
    view,
    systemDark: systemDark as Signal<boolean>,
    /** Paper is white. */
    printing: printing as Signal<boolean>,
    dark: computed(() => !printing.value && (theme.value === "auto" ? systemDark.value : theme.value === "dark")),
    hover: signal<Hover>({}),
    /** The head under the pointer, as its thumbnail is numbered; the overview shows it in full. */
    peeked: signal<number | null>(null),
    /** Whether the sheet of keys and marks is open. */
    help: signal(false),
    /** All heads on black: as a poster, or layer after layer. */
    show: signal<"poster" | "film" | null>(null),
    /** Whether the field that finds tokens is open. */
    searching: signal(false),
    /** What was done and cannot be seen at once, for those who do not see. */
    said: signal(""),
    failure: failure as Signal<unknown>,
    /** Says in place of the view what went wrong. */
    fail: (error: unknown) => (failure.value = error),
  };
}
