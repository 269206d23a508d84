import type { ReadonlySignal } from "@preact/signals-core";
import { levelFor } from "../../draw/heat";
import { density } from "../../parts/canvas";
import { Scale } from "../../parts/Scale";
import { isShare, liftTicks, ticksOf } from "../../state/quantity";
import type { Store } from "../../state/store";
import { counted } from "../../state/words";
import type { Picture } from "./picture";
import type { View } from "./viewport";

interface LegendProps {
  store: Store;
  picture: Picture | null;
  view: ReadonlySignal<View>;
}

/** The scale of a matrix, its looks without colour, and what was put together. */
export function Legend({ store, picture, view }: LegendProps) {
  if (!picture) return null;
  const { levels, looks, top } = picture;
  const facts = store.quantity.value;
  const heads = store.heads.value;
  const number = store.shown.value?.stack.head_numbers[heads[0]];
  const some = heads.length === 1 ? `head ${number}` : `mean of ${counted(heads.length, "head")}`;
  const what = facts.per === "layer" ? "all heads together" : some;
  return (
    <div class="view-bar">
      <small class="view-note">
        {what}
        {levelFor(view.value.cell * density(), levels.length) > 0 && " · zoomed out: the strongest of each block"}
      </small>
      <span class="looks">
        {looks.map((look) => (
          <small key={look} class="look" data-look={look}>
            {look}
          </small>
        ))}
        <small class="look" data-look="near zero">
          almost 0
        </small>
      </span>
      <Scale
        ramp={store.ramp.value}
        ticks={isShare(facts) ? liftTicks(top) : ticksOf(facts, top)}
        label={isShare(facts) ? "times the even share" : facts.label}
      />
    </div>
  );
}
