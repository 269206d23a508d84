import { useComputed, useSignal } from "@preact/signals";
import { signedRamp } from "../../draw/ramps";
import type { ViewParts } from "../../parts/mount";
import { Scale } from "../../parts/Scale";
import { Segmented } from "../../parts/Segmented";
import { percent } from "../../state/words";
import { KeyRows } from "./KeyRows";
import { PairDetail } from "./PairDetail";
import { QueryList } from "./QueryList";
import { countFor, type NeuronTable, neuronTable, ORDERS, type Order } from "./table";

/** Height of what stands above the rows, and of what is shown below for a pinned key. */
const [AROUND, DETAIL] = [110, 150];

/** From the numbers of a query and its keys to the weights: q, k, q × k, q · k, score, softmax. */
export function NeuronView({ store, room }: ViewParts) {
  const order = useSignal<Order>("as they are");
  const open = useSignal(true);
  const table = useComputed(() => neuronTable(store, order.value));
  const rows = useComputed(() => room.value - AROUND - (store.pins.value.key.length > 0 ? DETAIL : 0));
  const now = table.value;
  if (!now) {
    return (
      <p class="note" data-no-neurons>
        {store.shown.value
          ? 'This page holds the weights of this layer, but not its queries and keys; capture with keep="qk" to see them.'
          : ""}
      </p>
    );
  }
  const orders: readonly Order[] = store.page.model.rotary ? [...ORDERS, "frequency pairs"] : ORDERS;
  const number = store.shown.value?.stack.head_numbers[now.head];
  return (
    <div class="neuron-view">
      <div class="view-bar">
        <small class="view-note">
          layer {store.shown.value?.layer.layer} · head {number}
          {store.heads.value.length > 1 && " (the first chosen)"} · {now.features} neurons
        </small>
        <button
          type="button"
          class="quiet expand"
          aria-expanded={open.value}
          data-expand
          onClick={() => {
            open.value = !open.value;
          }}
        >
          {open.value ? "− hide neurons" : "+ show neurons"}
        </button>
        {open.value && (
          <Segmented
            label="Order of neurons"
            options={orders}
            chosen={order.value}
            onChoose={(option) => {
              order.value = option as Order;
            }}
          />
        )}
        <Scale
          ramp={signedRamp(store.dark.value)}
          ticks={[
            [0, "negative"],
            [0.5, "0"],
            [1, "positive"],
          ]}
          label="each column to its own maximum"
        />
      </div>
      <p class="note neuron-note" data-carried>
        {carriedNote(now)}
      </p>
      <div class="neuron-body">
        <QueryList store={store} room={rows} />
        <KeyRows store={store} room={rows} table={table} open={open.value} />
      </div>
      <PairDetail store={store} table={now} />
    </div>
  );
}

function carriedNote({ carried, features }: NeuronTable): string {
  const first = carried[Math.min(4, carried.length) - 1];
  const words = `Of what sets the attended keys apart, the first 4 of ${features} neurons carry ${percent(first)}`;
  return `${words}; 80 % needs ${countFor(0.8, carried)}. Sizes are added whatever their sign.`;
}
