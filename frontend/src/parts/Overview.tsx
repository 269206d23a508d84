import { useComputed, useSignal } from "@preact/signals";
import { weightRamp } from "../draw/ramps";
import type { Store } from "../state/store";
import { HeadGrid, type ThumbStyle, weightThumbs } from "./HeadGrid";
import { Scale, WEIGHT_TICKS } from "./Scale";

/** The map: all heads of all layers, small. */
export function Overview({ store }: { store: Store }) {
  const style = useSignal<ThumbStyle>("lines");
  const thumbs = useComputed(() => weightThumbs(store, style.value));
  const other = style.value === "lines" ? "matrices" : "lines";
  return (
    <section class="card overview" aria-label="All heads">
      <div class="card-head">
        <strong>
          All heads
          {store.quantity.value.name !== "weight" && <small class="view-note"> · weights</small>}
        </strong>
        <button
          type="button"
          class="quiet"
          onClick={() => {
            style.value = other;
          }}
        >
          as {other}
        </button>
      </div>
      <HeadGrid store={store} thumbs={thumbs} most={34} gap={2} />
      {style.value === "matrices" && <Scale ramp={weightRamp(store.dark.value)} ticks={WEIGHT_TICKS} label="weight" />}
    </section>
  );
}
