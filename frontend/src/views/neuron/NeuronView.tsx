import { useComputed } from "@preact/signals";
import { CHOICES } from "../../contract/values";
import { signedRamp } from "../../draw/ramps";
import { Choice } from "../../parts/Choice";
import type { ViewParts } from "../../parts/mount";
import { Scale } from "../../parts/Scale";
import { reportDrawn } from "../../parts/Themed";
import { percent } from "../../state/words";
import { Picture } from "../head/Picture";
import { KeyRows } from "./KeyRows";
import { PairDetail } from "./PairDetail";
import { QueryList } from "./QueryList";
import { countFor, type NeuronTable, neuronTable, queryShown } from "./table";

/** Height of what stands above the rows. */
const AROUND = 116;
/** Queries whose rows stand below each other, at most. */
const MOST_STACKED = 6;

const ORDER_WORDS = { model: "as they are", ranked: "by what they add", pairs: "frequency pairs", hidden: "hidden" };

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
      <p class="note" data-no-neurons>
        {store.shown.value
          ? 'This page holds the weights of this layer, but not its queries and keys; capture with keep="qk" to see them.'
          : ""}
      </p>
    );
  }
  const orders = CHOICES.neurons.filter((order) => order !== "pairs" || store.shown.value?.layer.rotary);
  const number = store.shown.value?.stack.head_numbers[now.head];
  return (
    <div class="neuron-view">
      <div class="view-bar">
        <small class="view-note">
          layer {store.shown.value?.layer.layer} · head {number} · {now.features} neurons
        </small>
        <Choice
          label="neurons"
          name="data-neurons"
          options={orders}
          words={ORDER_WORDS}
          chosen={neurons}
          onChoose={(order) => store.choose({ neurons: order })}
        />
        {open && (
          <Scale
            ramp={signedRamp(store.dark.value)}
            ticks={[
              [0, "negative"],
              [0.5, "0"],
              [1, "positive"],
            ]}
            label="scaled by column"
          />
        )}
      </div>
      {open ? (
        <>
          <p class="note neuron-note" data-carried>
            {carriedNote(now)}
          </p>
          <div class="neuron-body">
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

function carriedNote({ carried, features }: NeuronTable): string {
  const first = carried[Math.min(4, carried.length) - 1];
  const words = `Of what sets the attended keys apart, the first 4 of ${features} neurons carry ${percent(first)}`;
  return `${words}; 80 % needs ${countFor(0.8, carried)}. Sizes are added whatever their sign.`;
}
