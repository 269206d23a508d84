import type { ReadonlySignal } from "@preact/signals";
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { signedRamp } from "../../draw/color";
import { density, putPixels, useWidth } from "../../parts/canvas";
import { reportDrawn } from "../../parts/mount";
import { valueText } from "../../state/quantity";
import type { Store } from "../../state/store";
import { readable, shortWeight, signedNumber } from "../../state/words";
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
  const { query: queries, key: keys } = store.nowStack.value;
  const count = keys.labels.length;
  const sizes = useComputed(() => {
    const features = table.value?.features ?? 1;
    const wide = width.value - (table.value?.further ? FURTHER : 0);
    const free = wide - NAME - NUMBERS[wide < NARROW ? "narrow" : "wide"] - 4 * GAP;
    const cell = Math.max(1, Math.min(LARGEST_CELL, free / (2 * features)));
    const height = Math.min(count * PITCH, Math.max(6 * PITCH, room.value - HEADING));
    return {
      cell,
      /** Where the two bands of neurons begin. */
      bands: [NAME, NAME + cell * features + GAP] as const,
      height,
      /** The rows that are seen, and how far they are scrolled. */
      first: Math.max(0, Math.floor(scroll.value / PITCH)),
      end: Math.min(count, Math.ceil((scroll.value + height) / PITCH) + 1),
      offset: scroll.value,
    };
  });
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [now, shown] = [table.value, store.shown.value];
    if (!canvas || !now || !shown || width.value === 0) return;
    const scale = density();
    const { pixels, ...size } = neuronPixels(now, sizes.value, scale, store.dark.value);
    putPixels(canvas, pixels, size);
    reportDrawn(canvas, store, shown, { query: String(now.query) });
  });
  const now = table.value;
  if (!now) return null;
  const { first, end, height, cell } = sizes.value;
  const band = cell * now.features;
  return (
    <div
      class="key-rows relative slim"
      ref={root}
      data-further={now.further !== null || undefined}
      style={{
        "--band": `${band}px`,
        "--band-gap": `${GAP}px`,
        "--pitch": `${PITCH}px`,
        "--heading": `${HEADING}px`,
      }}
    >
      <div aria-hidden="true">
        <canvas data-canvas="neurons" style={{ height: `${height + HEADING}px` }} />
      </div>
      <div class="key-heading key-row stack muted" aria-hidden="true">
        <span class="query-name cut">
          <bdi>{readable(queries.labels[now.query] ?? "").text}</bdi>
        </span>
        <span class="band-name">{band < 84 ? "q, k" : "query q, key k"}</span>
        <span class="band-name">q × k</span>
        <span>q · k</span>
        <span>score</span>
        <span>softmax</span>
        {now.further && <span>{store.quantity.value.label}</span>}
      </div>
      <div
        class="key-scroll scrolls"
        style={{ height: `${height}px` }}
        onScroll={(event) => (scroll.value = event.currentTarget.scrollTop)}
      >
        <ol class="relative" style={{ height: `${count * PITCH}px` }}>
          {Array.from({ length: end - first }, (_, at) => (
            <KeyRow key={first + at} store={store} table={now} token={first + at} />
          ))}
        </ol>
      </div>
    </div>
  );
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
      class="key-row stack middle"
      data-side="key"
      data-token={token}
      data-masked={masked || undefined}
      data-pinned={pinned || undefined}
      style={{ top: `${token * PITCH}px` }}
    >
      <span
        class="key-name row slim"
        data-special={key.special[token] || undefined}
        data-stand-in={standIn || undefined}
      >
        <button
          class="plus rigid muted"
          aria-expanded={pinned}
          aria-label={`Neurons of ${text}, token ${token}`}
          onClick={toggle}
        >
          {pinned ? "−" : "+"}
        </button>
        <bdi class="label">{text}</bdi>
      </span>
      <span />
      <span />
      <SignedBar value={dot} most={table.most.dot} />
      <span class="number">{masked ? "masked" : signedNumber(score)}</span>
      <span class="softmax row">
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
    <span class="softmax further row" data-further={finite ? value : undefined}>
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
    <span class="signed-bar relative" title={signedNumber(value)}>
      <i data-negative={value < 0 || undefined} style={{ left: `${value < 0 ? 50 - part : 50}%`, width: `${part}%` }} />
    </span>
  );
}

/** Height of a key's row, in CSS pixels: room for a finger where there is one. */
export const PITCH = globalThis.matchMedia?.("(pointer: coarse)").matches ? 32 : 22;

type Sizes = Readonly<Record<"cell" | "height" | "first" | "end" | "offset", number>> & {
  readonly bands: readonly [keys: number, products: number];
};

const NAME = 112;
/** Width of all that stands right of the neurons. */
const NUMBERS = { wide: 60 + 52 + 88, narrow: 44 + 54 + 60 };
/** Width of the view below which they stand closer. */
const NARROW = 540;
const GAP = 14;
const LARGEST_CELL = 16;
/** Keys that the query may not look at are so many times fainter. */
const MASKED = 4;

/** Faint numbers stay visible: a colour is as strong as this power of a number's part of the maximum. */
const POWER = 0.7;

/** The rows of neurons that are seen, with the query above them. */
function neuronPixels(table: NeuronTable, sizes: Sizes, scale: number, dark: boolean) {
  const width = Math.max(1, Math.round((sizes.bands[1] + sizes.cell * table.features) * scale));
  const height = Math.max(1, Math.round((sizes.height + HEADING) * scale));
  const pixels = new Uint32Array(width * height);
  const ramp = signedRamp(dark);
  const line = sizes.cell > 3 ? 1 : 0;
  /** A band of neurons as high as a row, below `clip`. */
  const draw = (band: number, top: number, values: Float32Array, most: number, clip = HEADING) => {
    const from = Math.max(Math.round(clip * scale), Math.round((top + 1) * scale));
    const to = Math.min(height, Math.round((top + PITCH - 1) * scale));
    table.order.forEach((feature, place) => {
      const part = most > 0 ? Math.min(1, Math.abs(values[feature]) / most) : 0;
      const byte = Math.round(128 + 127 * Math.sign(values[feature]) * part ** POWER);
      const left = Math.round((band + place * sizes.cell) * scale);
      const right = Math.round((band + (place + 1) * sizes.cell - line) * scale);
      for (let y = from; y < to; y++) pixels.fill(ramp[Math.max(1, byte)], y * width + left, y * width + right);
    });
  };
  const [keys, products] = sizes.bands;
  for (let key = sizes.first; key < sizes.end; key++) {
    const top = HEADING + key * PITCH - sizes.offset;
    const weaker = table.scores[key] === Number.NEGATIVE_INFINITY ? MASKED : 1;
    draw(keys, top, table.keyAt(key), weaker * table.most.k);
    draw(products, top, table.productAt(key), weaker * table.most.product);
  }
  draw(keys, HEADING - PITCH - 6, table.q, table.most.q, 0);
  return { pixels: new Uint8ClampedArray(pixels.buffer), width, height };
}
