import type { ReadonlySignal } from "@preact/signals";
import { type Signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { DEFAULTS, KIND_NAMES, MOST_IN_TRAY } from "../../../contract/values";
import type { PageStack, PageTokens } from "../../../types/page";
import { kindColor } from "../../draw/kinds";
import { Quiet, walkTiles } from "../../parts/controls";
import { KindIcon } from "../../parts/legend";
import type { ViewParts } from "../../parts/mount";
import { headName } from "../../state/evidence";
import { headWords, kindOf } from "../../state/kinds";
import {
  type Drawing,
  readEntry,
  recordOf,
  recordWords,
  usualDrawing,
  type View,
  writeEntry,
} from "../../state/selection";
import { createStore, type Hover, type Store } from "../../state/store";
import { quoted, readable } from "../../state/words";
import { picturesOf } from "../one/OneHead";

/** Height of the names above the pictures. */
const AROUND = 96;

/** Height of the names above one of two rows. */
const HEADER = 92;

/** What is pointed at in one picture, and the tokens that it counts. */
interface Pointed {
  readonly at: Hover;
  /** The record that they are of. */
  readonly record: string;
  readonly of: PageStack;
}

/** Up to six frozen pictures in one row. */
export function CompareView({ store, room: place }: ViewParts) {
  /** Many queries are two rows of matrices. */
  const rows = useComputed(() => {
    const { tray } = store.selection.value;
    return tray.length > 3 && usualDrawing(store.stack.value) === "matrix" && areOfOneText(store, tray) ? 2 : 1;
  });
  const room = useComputed(() => (rows.value === 1 ? place.value - AROUND : place.value / 2 - HEADER));
  const pointed = useSignal<Pointed | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const { tray } = store.selection.value;
  const remove = (at: number) => {
    store.choose({ tray: tray.filter((_, other) => other !== at) });
    store.said.value = `${tray[at]} removed, ${tray.length - 1} left`;
    const next = Math.min(at, tray.length - 2);
    requestAnimationFrame(() => root.current?.querySelectorAll<HTMLElement>("[data-picture]")[next]?.focus());
  };
  return (
    <div class="compare-view">
      <div class="view-bar row wrap">
        <small class="view-note muted">
          {tray.length} of 6 pictures · Shift-click a head of the overview, or “+ compare” in a view, adds one
          {store.root.beside && " of each record"}
        </small>
        <Quiet data-clear onClick={() => store.choose({ tray: [] })}>
          clear
        </Quiet>
      </div>
      <div
        class="tray stack"
        ref={root}
        role="list"
        aria-label="Compared pictures"
        onKeyDown={(event) => walkTiles(event, MOST_IN_TRAY, "[data-picture]")}
        onScrollCapture={scrollTogether}
        data-same={areOfOneText(store, tray) || undefined}
        data-rows={rows.value > 1 || undefined}
      >
        {tray.map((line, at) => (
          <Cell
            key={line}
            store={store}
            line={line}
            room={room}
            names={rows.value === 1 && !store.stack.value.sentences ? undefined : at % 3 === 0 ? "rows" : "none"}
            pointed={pointed}
            count={tray.length}
            at={at}
            onRemove={() => remove(at)}
          />
        ))}
      </div>
    </div>
  );
}

/** Words stand beside the lines of one text, wherever it is scrolled. */
function scrollTogether({ target, currentTarget }: Event): void {
  const { scrollTop, classList } = target as HTMLElement;
  if (!classList.contains("scroller")) return;
  for (const other of (currentTarget as HTMLElement).querySelectorAll(".scroller")) other.scrollTop = scrollTop;
}

interface CellProps {
  store: Store;
  line: string;
  room: ReadonlySignal<number>;
  /** Which names stand at a matrix, where others have them. */
  names: "rows" | "none" | undefined;
  pointed: Signal<Pointed | null>;
  count: number;
  at: number;
  onRemove: () => void;
}

/** One frozen picture, with a state of its own. */
function Cell({ store, line, room, names, pointed, count, at, onRemove }: CellProps) {
  const record = recordOf(line);
  const own = useMemo(() => {
    const { source, layers } = store.beside(record);
    const { words } = store.selection.peek();
    return createStore(source, { ...DEFAULTS, ...readEntry(line, store.root), words }, layers);
  }, [store, store.root, record, line]);
  useEffect(() => own.destroy, [own]);
  useSignalEffect(() => {
    own.systemDark.value = store.dark.value;
    const { words } = store.selection.value;
    if (own.selection.peek().words !== words) own.choose({ words });
  });
  useLink(own, record, pointed);
  // A click in it pins there and nowhere else, and is a change of the tray.
  useSignalEffect(() => {
    const now = writeEntry(own.selection.value, own.page, record);
    const { tray } = store.selection.peek();
    if (now !== line && tray.includes(line))
      store.choose({ tray: tray.map((other) => (other === line ? now : other)) });
  });
  const view = own.view.value as Drawing;
  const drawn = view === "head" ? usualDrawing(own.stack.value) : view;
  const Picture = picturesOf(own.stack.value)[drawn];
  const head = own.full.value;
  const kind = own.kinds.value && kindOf(own.kinds.value, head);
  const words = entryWords(own, recordWords(store.root, record));
  const more = own.kinds.value ? headWords(own.kinds.value, head).more : "";
  const said = [...words.slice(1), more].filter(Boolean).join(" · ");
  return (
    <div
      class="tray-picture slim"
      role="listitem"
      style={{ "--kind": kind ? kindColor(kind, store.dark.value) : undefined }}
      data-picture={line}
      aria-label={`${words.join(", ")}; picture ${at + 1} of ${count}. Arrows go to the next, Delete removes it`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows and Delete work here
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.target === event.currentTarget && ["Delete", "Backspace"].includes(event.key)) onRemove();
      }}
    >
      <header class="stack">
        <button class="tray-name left cut" title="Open it" onClick={() => open(store, line)}>
          {words[0]}{" "}
          {kind && (
            <em class="block" data-kind={kind}>
              <KindIcon kind={kind} />
              {KIND_NAMES[kind]}
            </em>
          )}
        </button>
        <span class="tray-tools">
          <button data-remove aria-label={`Remove ${words[0]}`} onClick={onRemove}>
            ×
          </button>
        </span>
        <small>
          <bdi title={said}>{said || "\u00a0"}</bdi>
        </small>
      </header>
      <Picture store={own} room={room} plain names={names} />
    </div>
  );
}

/** Follows what is pointed at in pictures of the same tokens, and tells them what is pointed at here. */
function useLink(own: Store, record: string, pointed: Signal<Pointed | null>): void {
  useSignalEffect(() => {
    const at = own.hover.value;
    pointed.value = { at, record, of: own.stack.peek() };
  });
  useSignalEffect(() => {
    const now = pointed.value;
    if (!now) return;
    // Of two records tokens belong together by their place, where there are as many.
    const said = ({ pieces }: PageTokens) => (now.record === record ? pieces.join("\n") : pieces.length);
    const [one, other] = [now.of, own.stack.peek()];
    if (said(one.query) === said(other.query) && said(one.key) === said(other.key)) own.preview(now.at);
  });
}

/** Whether all pictures are lines between the same tokens, whose words need to stand but once. */
function areOfOneText({ root, stack: shown }: Store, tray: readonly string[]): boolean {
  const entries = tray.map((line) => ({ ...readEntry(line, root), record: recordOf(line) }));
  const [first] = entries;
  return entries.every(
    ({ view = "head", stack, record }) =>
      isUsual(view, shown.value) && stack === first.stack && record === first.record,
  );
}

/** Whether a head is drawn as the input decides: "head" is that, too. */
function isUsual(view: View, stack: PageStack): boolean {
  return view === "head" || view === usualDrawing(stack);
}

function open(store: Store, line: string): void {
  store.choose({ ...readEntry(line, store.root), shown_record: recordOf(line) });
}

/** What a picture shows: its place first, then its record, then what is not as usual. */
function entryWords({ selection, stack, page, quantity, full }: Store, record: string): string[] {
  const { view, query, key, filter, hide_special: mute, sinks, neurons } = selection.value;
  const { name, query: queries, key: keys } = stack.value;
  const named = (labels: readonly string[], tokens: readonly number[]) =>
    tokens.map((token) => quoted(readable(labels[token], 16).text)).join(", ");
  return [
    headName({ stack: stack.value }, full.value),
    record,
    page.stacks.length > 1 ? name : "",
    isUsual(view, stack.value) ? "" : view,
    query.length > 0 ? `from ${named(queries.labels, query)}` : "",
    key.length > 0 ? `to ${named(keys.labels, key)}` : "",
    quantity.value.name === "weight" && quantity.value.label === "weight" ? "" : quantity.value.label,
    filter === "all" ? "" : `${filter[0]} to ${filter[1]}`.toUpperCase().replace("TO", "to"),
    mute ? "without special tokens" : "",
    sinks ? "" : "without sinks",
    view === "neuron" && neurons !== "model" ? neurons : "",
  ].filter(Boolean);
}
