import type { ReadonlySignal, Signal } from "@preact/signals-core";
import { levelFor } from "../../draw/heat";
import { weightRamp } from "../../draw/ramps";
import { density } from "../../parts/canvas";
import { Scale, ticksTo } from "../../parts/Scale";
import type { Store } from "../../state/store";
import { counted } from "../../state/words";
import type { Picture } from "./picture";
import type { View } from "./viewport";

interface LegendProps {
  store: Store;
  picture: Picture | null;
  view: ReadonlySignal<View>;
  /** Whether the scale ends at the strongest weight of the picture in place of 1. */
  stretch: Signal<boolean>;
}

/** The scale of a matrix, its looks without colour, and what was put together. */
export function Legend({ store, picture, view, stretch }: LegendProps) {
  if (!picture) return null;
  const { most, levels, colors, looks } = picture;
  const heads = store.heads.value;
  const number = store.shown.value?.stack.head_numbers[heads[0]];
  const alone = heads.length === 1 || most !== null;
  const what = alone ? `head ${number}` : `mean of ${counted(heads.length, "head")}`;
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
        {most === null && (
          <small class="look" data-look="near zero">
            near zero
          </small>
        )}
      </span>
      {most === null ? (
        <>
          <button
            type="button"
            class="quiet"
            data-stretch
            aria-pressed={stretch.value}
            title="Let the scale end at the strongest weight of this picture, not at 1"
            onClick={() => {
              stretch.value = !stretch.value;
            }}
          >
            stretch
          </button>
          <Scale ramp={weightRamp(store.dark.value)} ticks={ticksTo(picture.top)} label="weight" />
        </>
      ) : (
        <Scale
          ramp={colors.ramp}
          ticks={[
            [0, `−${most.toPrecision(2)}`],
            [0.5, "0"],
            [1, most.toPrecision(2)],
          ]}
          label="score"
        />
      )}
    </div>
  );
}
