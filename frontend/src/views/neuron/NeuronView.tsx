import type { ReadonlySignal } from "@preact/signals";
import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { CHOICES } from "../../../contract/values";
import { signedRamp } from "../../draw/color";
import { added, biasAt, carried, ranked } from "../../draw/scores";
import { largest } from "../../draw/values";
import { Choice } from "../../parts/controls";
import { Scale } from "../../parts/legend";
import { reportDrawn, type ViewParts } from "../../parts/mount";
import { steppedToken, TokenColumn, tokenEvents } from "../../parts/tokens";
import { NO_PICTURES } from "../../source/heads";
import { evenly } from "../../state/quantity";
import type { Store } from "../../state/store";
import { percent, readable, shortWeight, signedNumber } from "../../state/words";
import { Picture } from "../head/Picture";
import { markFocus } from "../head/paint";
import { KeyRows, PITCH } from "./KeyRows";
import { countFor, joinedWords, type NeuronTable, neuronTable, queryShown } from "./table";

/** Height of what stands above the rows. */
const AROUND = 116;
/** Queries whose rows stand below each other, at most. */
const MOST_STACKED = 6;

/** From the numbers of a query and its keys to the weights: q, k, q × k, q · k, score, softmax. */
export function NeuronView({ store, room }: ViewParts) {
  const { neurons } = store.selection.value;
  const open = neurons !== "hidden";
  const table = useComputed(() => neuronTable(store, store.selection.value.neurons, queryShown(store)));
  const stacked = store.pins.value.query.slice(0, MOST_STACKED);
  const high = useComputed(() => room.value - AROUND);
  const rows = useComputed(() => high.value / Math.max(1, Math.min(MOST_STACKED, store.pins.value.query.length)));
  const now = table.value;
  if (!now) {
    return (
      <p class="note muted" data-no-neurons>
        {store.shown.value
          ? 'This page holds the weights of this layer, but not its queries and keys; capture with keep="qk" to see them.'
          : ""}
      </p>
    );
  }
  const number = store.shown.value?.stack.head_numbers[now.head];
  return (
    <div class="neuron-view relative">
      <div class="view-bar row wrap">
        <small class="view-note muted">
          layer {store.shown.value?.layer.layer} · head {number} · {now.features} neurons
        </small>
        {open && (
          <Scale
            ramp={signedRamp(store.dark.value)}
            ticks={evenly(["negative", "0", "positive"])}
            label="scaled by column"
          />
        )}
      </div>
      {open ? (
        <>
          <p class="note neuron-note muted" data-carried>
            Of what sets the attended keys apart, the first 4 of {now.features} neurons carry{" "}
            {percent(now.carried[Math.min(4, now.carried.length) - 1])}; 80 % needs {countFor(0.8, now.carried)}. Sizes
            are added whatever their sign.
          </p>
          <div class="neuron-body stack">
            <QueryList store={store} room={high} />
            <div>
              {stacked.length > 1 ? (
                stacked.map((query) => <KeyRows key={query} store={store} room={rows} query={query} />)
              ) : (
                <KeyRows store={store} room={rows} />
              )}
            </div>
          </div>
          <PairDetail store={store} table={now} />
        </>
      ) : (
        <Picture store={store} room={high} onDrawn={(canvas, shown) => reportDrawn(canvas, store, shown)} />
      )}
    </div>
  );
}

/** The queries, one of which is looked at. */
function QueryList({ store, room }: { store: Store; room: ReadonlySignal<number> }) {
  const root = useRef<HTMLDivElement>(null);
  const { query } = store.shownStack.value ?? store.stack.value;
  useSignalEffect(() => {
    const list = root.current;
    if (!list || !store.shownStack.value) return;
    markFocus(list, store);
    const [pinned] = store.pins.value.query;
    const chosen = list.querySelector<HTMLElement>(`[data-token="${queryShown(store)}"]`);
    chosen?.setAttribute("data-lit-self", "pin");
    chosen?.setAttribute("aria-selected", "true");
    if (pinned === undefined || !chosen) return;
    // Only the list, as little as needed.
    const [top, { scrollTop, clientHeight }] = [chosen.offsetTop, list];
    if (top < scrollTop || top + chosen.offsetHeight > scrollTop + clientHeight)
      list.scrollTop = top - clientHeight / 2;
  });
  return (
    <div class="query-list">
      <small class="view-note muted" title="Shift-click stacks the rows of several queries">
        query
      </small>
      <div
        class="query-scroll scrolls relative"
        ref={root}
        style={{ "--pitch": `${PITCH}px`, maxHeight: `${Math.max(150, room.value)}px` }}
        {...tokenEvents(store, (event) => steppedToken(event, (at) => STEPS[event.key] && at + STEPS[event.key]))}
      >
        <TokenColumn side="query" tokens={query} pictures={NO_PICTURES} pair={false} />
      </div>
    </div>
  );
}

const STEPS: Readonly<Record<string, number>> = { ArrowUp: -1, ArrowDown: 1 };

/** The numbers of a pair, as they are called. */
const NAMES = { product: "q × k × scale", query: "query q", key: "key k" } as const;
type Enlarged = keyof typeof NAMES;

/** A drawer for the pair that is looked at: query, key and what each neuron adds to their score. */
function PairDetail({ store, table }: { store: Store; table: NeuronTable }) {
  const { vector, key: pinned } = store.selection.value;
  const root = useRef<HTMLElement>(null);
  const started = useRef(false);
  // Below the rows of a narrow page it may be out of sight when a key is chosen.
  useEffect(() => {
    if (pinned.length > 0 && started.current) root.current?.scrollIntoView?.({ block: "nearest" });
    started.current = true;
  }, [pinned]);
  const joined = joinedWords(store);
  const key = store.pair.value.key ?? (table.query === joined.query ? joined.key : undefined);
  const shown = store.shown.value;
  if (key === undefined || !shown || vector === "hidden") {
    return <p class="note muted">The + beside a key shows what each neuron adds to its score.</p>;
  }
  const contributions = added(table.parts, table.part, table.query, key);
  const order = ranked(contributions);
  const shares = carried(contributions, order);
  const vectors = { query: table.q, key: table.keyAt(key), product: contributions };
  const [from, to] = [shown.stack.query.labels[table.query], shown.stack.key.labels[key]].map(
    (it) => readable(it).text,
  );
  return (
    <section class="pair-detail" ref={root} aria-label="Neurons of one pair" data-pair-detail>
      <Choice
        label="Enlarged"
        silent
        name="data-enlarged"
        options={CHOICES.vector}
        words={{ ...NAMES, hidden: "no pair" }}
        chosen={vector}
        onChoose={(vector) => store.choose(vector === "hidden" ? { key: [], vector } : { vector })}
      />
      <p class="formula">
        <bdi>{from}</bdi> → <bdi>{to}</bdi>: {formula(store, table, key)}
      </p>
      {(["query", "key", "product"] as const).map((name) => (
        <VectorBars key={name} name={name} values={vectors[name]} order={order} large={name === vector} />
      ))}
      <p class="note muted" data-pair-carried>
        The first 4 of {table.features} neurons carry {percent(shares[3] ?? 1)} of all that is added to this score, 80 %
        needs {countFor(0.8, shares)}; neurons stand in this order
      </p>
    </section>
  );
}

interface VectorBarsProps {
  name: Enlarged;
  values: Float32Array;
  order: readonly number[];
  /** Whether it has its numbers, and an axis. */
  large: boolean;
}

/** One vector as bars, by neuron: small, or enlarged with numbers and an axis. */
function VectorBars({ name, values, order, large }: VectorBarsProps) {
  const most = largest(values) || 1;
  return (
    <div class="vector stack middle" data-vector={name} data-large={large || undefined}>
      <span class="vector-name">{NAMES[name]}</span>
      <span class="vector-axis flex apart muted" aria-hidden="true">
        {large && [most, 0, -most].map((value) => <small key={value}>{signedNumber(value)}</small>)}
      </span>
      <div class="contributions flex">
        {order.map((feature) => (
          <span key={feature} class="stack slim" title={`neuron ${feature}: ${signedNumber(values[feature])}`}>
            <i
              data-negative={values[feature] < 0 || undefined}
              style={{ "--part": Math.abs(values[feature]) / most }}
            />
            {large && (
              <small data-neuron={feature}>
                <b>{feature}</b> {signedNumber(values[feature])}
              </small>
            )}
          </span>
        ))}
      </div>
    </div>
  );
}

/** "q · k 12.1 × scale 0.177 = 2.14, bias −0.3 → score 1.84 → weight .21" */
function formula(store: Store, table: NeuronTable, key: number): string {
  const { parts, part } = table;
  const bias = biasAt(parts, parts.bias, part, table.query, key);
  const steps = [
    `q · k ${signedNumber(table.dots[key])} × scale ${parts.scale.toPrecision(3)} = ${signedNumber(table.dots[key] * parts.scale)}`,
    ...(parts.softCap === null ? [] : [`cap ${parts.softCap}`]),
    ...(parts.bias ? [`bias ${signedNumber(bias)}`] : []),
    `${store.merged.value ? "mean " : ""}score ${signedNumber(table.scores[key])}`,
    `weight ${shortWeight(table.weights[key])}`,
  ];
  return steps.join(" → ");
}
