import { CHOICES } from "../../contract/values";
import { kindRamp } from "../../draw/kinds";
import { topLift } from "../../draw/lift";
import { rampCss, signedRamp, weightRamp } from "../../draw/ramps";
import { Choice } from "../../parts/Choice";
import { Scale } from "../../parts/Scale";
import type { LoadedKinds } from "../../source/kinds";
import { MEASURE_WORDS, mostOf } from "../../state/heat";
import { isShare } from "../../state/quantity";
import type { Store } from "../../state/store";
import { amount } from "../../state/words";

/** The scale of all tiles, in the hue of heads that rest: the same lightness means the same in every hue. */
export function WeightScale({ store: { quantity, dark, stack } }: { store: Store }) {
  const { signed, per, label } = quantity.value;
  const diverging = signed && per === "head";
  const ramp = diverging ? signedRamp(dark.value) : kindRamp("resting", dark.value);
  const share = isShare(quantity.value) || per !== "head";
  const part = (step: number) => (diverging || share ? step / 10 : Math.sqrt(step / 10));
  const stops = Array.from({ length: 11 }, (_, step) => rampCss(ramp, Math.round(255 * part(step))));
  const most = topLift(stack.value.key.labels.length);
  const [low, high] = diverging ? ["below 0", "above"] : share ? ["1", `${most} ×`] : ["0", "most"];
  return (
    <span class="weight-scale" data-signed={diverging || undefined}>
      {share ? "times the even share" : label} {low}
      <i style={{ background: `linear-gradient(90deg, ${stops.join(", ")})` }} />
      {high}
    </span>
  );
}

/** Which measure colours the heads. */
export function MeasureChoice({ store }: { store: Store }) {
  const { said } = store.kinds.value ?? {};
  const known = CHOICES.measure.filter((name) => name === "kind" || said?.columns.includes(name));
  return (
    <Choice
      label="colour"
      name="data-measure"
      options={known}
      words={MEASURE_WORDS}
      chosen={store.selection.value.measure}
      onChoose={(measure) => store.choose({ measure })}
    />
  );
}

/** The scale of the measure; kinds have their legend in the sentence of the overview. */
export function HeatScale({ store, kinds }: { store: Store; kinds: LoadedKinds }) {
  const { measure } = store.selection.value;
  if (measure === "kind") return null;
  const ticks = [0, 0.5, 1].map((part) => [part, amount(part * mostOf(kinds, measure))] as const);
  return <Scale ramp={weightRamp(store.dark.value)} ticks={ticks} label={MEASURE_WORDS[measure]} />;
}
