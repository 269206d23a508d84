import { useComputed } from "@preact/signals";
import type { PageMoved } from "../contract/page";
import { weightRamp } from "../draw/ramps";
import { topOf } from "../draw/values";
import { movedFacts, movedThumbs } from "../state/moved";
import { ticksOf } from "../state/quantity";
import type { Store } from "../state/store";
import { type GridThumbs, HeadGrid, weightThumbs } from "./HeadGrid";
import { Scale, WEIGHT_TICKS } from "./Scale";

/** The map of all heads beside the views: of a comparison how far they moved, else their weights. */
export function AllHeads({ store }: { store: Store }) {
  const { moved } = store.stack.value;
  const compared = moved && !["weight", "score"].includes(store.quantity.value.name);
  return compared ? <MovedMap store={store} moved={moved} /> : <WeightMap store={store} />;
}

/** The map of a comparison: how far each head moved. */
function MovedMap({ store, moved }: { store: Store; moved: PageMoved }) {
  const thumbs = useComputed((): GridThumbs | null => {
    const now = store.stack.value.moved;
    if (!now) return null;
    return { values: movedThumbs(now), quantity: movedFacts(now), style: "matrices", complete: true };
  });
  const top = thumbs.value ? topOf(thumbs.value.values, 0) : 1;
  const changed = moved.changed.some((row) => row.includes(true));
  return (
    <section class="card all-heads" aria-label="All heads" data-moved>
      <div class="card-head">
        <strong>
          All heads<small class="view-note"> · how far they moved</small>
        </strong>
      </div>
      <HeadGrid store={store} thumbs={thumbs} most={34} gap={2} />
      <Scale ramp={weightRamp(store.dark.value)} ticks={ticksOf(movedFacts(moved), top)} label="nats" />
      <p class="note">
        {moved.label}, mean over rows. Hatched: no more than the spread ({moved.spread}).
        {changed && " ×: changed on purpose."}
      </p>
    </section>
  );
}

/** The map: all heads of all layers, small. */
function WeightMap({ store }: { store: Store }) {
  const thumbs = useComputed(() => weightThumbs(store, "matrices"));
  return (
    <section class="card all-heads" aria-label="All heads">
      <div class="card-head">
        <strong>
          All heads
          {store.quantity.value.name !== "weight" && <small class="view-note"> · weights</small>}
        </strong>
      </div>
      <HeadGrid store={store} thumbs={thumbs} most={34} gap={2} />
      <Scale ramp={weightRamp(store.dark.value)} ticks={WEIGHT_TICKS} label="weight" />
    </section>
  );
}
