import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useRef } from "preact/hooks";
import { density, putPixels } from "../../parts/canvas";
import { reportDrawn } from "../../parts/Themed";
import { useWidth } from "../../parts/useWidth";
import { readable } from "../../state/label";
import { valueText } from "../../state/quantity";
import type { Store } from "../../state/store";
import { shortWeight, signedNumber } from "../../state/words";
import { layoutOf, neuronPixels, PITCH, type Sizes } from "./paint";
import { type NeuronTable, neuronTable, queryShown } from "./table";

interface KeyRowsProps {
  store: Store;
  room: ReadonlySignal<number>;
  /** The query whose keys these are; the one that is looked at where not given. */
  query?: number;
}

const HEADING = 58;
/** Width of the column of another quantity. */
const FURTHER = 120;

/** One row for each key: its numbers, their products with those of the query, and what follows from them. */
export function KeyRows({ store, room, query }: KeyRowsProps) {
  const root = useRef<HTMLDivElement>(null);
  const scroll = useSignal(0);
  const width = useWidth(root);
  const table = useComputed(() => neuronTable(store, store.selection.value.neurons, query ?? queryShown(store)));
  const keys = (store.shownStack.value ?? store.stack.value).key;
  const count = keys.labels.length;
  const sizes = useComputed((): Sizes => {
    const features = table.value?.features ?? 1;
    const height = Math.min(count * PITCH, Math.max(6 * PITCH, room.value - HEADING));
    const first = Math.max(0, Math.floor(scroll.value / PITCH));
    const end = Math.min(count, Math.ceil((scroll.value + height) / PITCH) + 1);
    return {
      ...layoutOf(width.value - (table.value?.further ? FURTHER : 0), features),
      height,
      first,
      end,
      offset: scroll.value,
    };
  });
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [now, shown] = [table.value, store.shown.value];
    if (!canvas || !now || !shown || width.value === 0) return;
    const scale = density();
    const { pixels, ...size } = neuronPixels(now, sizes.value, scale, store.dark.value, HEADING);
    putPixels(canvas, pixels, size);
    reportDrawn(canvas, store, shown, { query: String(now.query) });
  });
  const now = table.value;
  if (!now) return null;
  const { first, end, height, cell, gap } = sizes.value;
  const band = cell * now.features;
  return (
    <div
      class="key-rows"
      ref={root}
      data-further={now.further !== null || undefined}
      style={{
        "--band": `${band}px`,
        "--band-gap": `${gap}px`,
        "--pitch": `${PITCH}px`,
        "--heading": `${HEADING}px`,
      }}
    >
      <div aria-hidden="true">
        <canvas data-canvas="neurons" style={{ height: `${height + HEADING}px` }} />
      </div>
      <div class="key-heading key-row" aria-hidden="true">
        <span class="query-name">
          <bdi>{readable(labelAt(store, now.query)).text}</bdi>
        </span>
        <span class="band-name">{band < 84 ? "q, k" : "query q, key k"}</span>
        <span class="band-name">q × k</span>
        <span>q · k</span>
        <span>score</span>
        <span>softmax</span>
        {now.further && <span>{store.quantity.value.label}</span>}
      </div>
      <div
        class="key-scroll"
        style={{ height: `${height}px` }}
        onScroll={(event) => {
          scroll.value = event.currentTarget.scrollTop;
        }}
      >
        <ol style={{ height: `${count * PITCH}px` }}>
          {Array.from({ length: end - first }, (_, at) => (
            <KeyRow key={first + at} store={store} table={now} token={first + at} />
          ))}
        </ol>
      </div>
    </div>
  );
}

function labelAt(store: Store, query: number): string {
  return (store.shownStack.value ?? store.stack.value).query.labels[query] ?? "";
}

function KeyRow({ store, table, token }: { store: Store; table: NeuronTable; token: number }) {
  const { key } = store.shownStack.value ?? store.stack.value;
  const { text, standIn } = readable(key.labels[token] ?? "");
  const [dot, score, weight] = [table.dots[token], table.scores[token], table.weights[token]];
  const masked = score === Number.NEGATIVE_INFINITY;
  const pinned = store.pins.value.key.includes(token);
  const toggle = () => {
    const { query } = store.selection.peek();
    const kept = query.includes(table.query) ? query : [table.query];
    store.choose({ query: kept, key: pinned ? [] : [token], vector: pinned ? "hidden" : "product" });
  };
  return (
    <li
      class="key-row"
      data-side="key"
      data-token={token}
      data-masked={masked || undefined}
      data-pinned={pinned || undefined}
      style={{ top: `${token * PITCH}px` }}
    >
      <span class="key-name" data-special={key.special[token] || undefined} data-stand-in={standIn || undefined}>
        <button class="plus" aria-expanded={pinned} aria-label={`Neurons of ${text}, token ${token}`} onClick={toggle}>
          {pinned ? "−" : "+"}
        </button>
        <bdi class="label">{text}</bdi>
      </span>
      <span />
      <span />
      <SignedBar value={dot} most={table.most.dot} />
      <span class="number">{masked ? "masked" : signedNumber(score)}</span>
      <span class="softmax">
        <i style={{ width: `${100 * weight}%` }} />
        <b>{masked ? "" : shortWeight(weight)}</b>
      </span>
      {table.further && <Further store={store} table={table} value={table.further[token]} />}
    </li>
  );
}

/** The chosen quantity of a key. */
function Further({ store, table, value }: { store: Store; table: NeuronTable; value: number }) {
  const facts = store.quantity.value;
  const finite = Number.isFinite(value);
  return (
    <span class="softmax further" data-further={finite ? value : undefined}>
      {facts.signed ? (
        <SignedBar value={finite ? value : 0} most={table.most.further} />
      ) : (
        <i style={{ width: `${(100 * value) / (table.most.further || 1)}%` }} />
      )}
      {facts.name !== "score" && <b>{finite ? valueText(facts)(value) : ""}</b>}
    </span>
  );
}

function SignedBar({ value, most }: { value: number; most: number }) {
  const part = most > 0 ? (50 * Math.abs(value)) / most : 0;
  return (
    <span class="signed-bar" title={signedNumber(value)}>
      <i data-negative={value < 0 || undefined} style={{ left: `${value < 0 ? 50 - part : 50}%`, width: `${part}%` }} />
    </span>
  );
}
