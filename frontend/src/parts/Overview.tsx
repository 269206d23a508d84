import { useSignal } from "@preact/signals";
import { weightRamp } from "../draw/ramps";
import type { Store } from "../state/store";
import { HeadGrid, type ThumbStyle } from "./HeadGrid";
import { Scale, WEIGHT_TICKS } from "./Scale";

/** The map: all heads of all layers, small. */
export function Overview({ store }: { store: Store }) {
  const style = useSignal<ThumbStyle>("lines");
  const other = style.value === "lines" ? "matrices" : "lines";
  return (
    <section class="card overview" aria-label="All heads">
      <div class="card-head">
        <strong>All heads</strong>
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
      <HeadGrid store={store} style={style.value} most={34} gap={2} />
      {style.value === "matrices" && <Scale ramp={weightRamp(store.dark.value)} ticks={WEIGHT_TICKS} label="weight" />}
    </section>
  );
}
