import { kindRamp } from "../../draw/kinds";
import { topLift } from "../../draw/lift";
import { rampCss, signedRamp } from "../../draw/ramps";
import { isShare } from "../../state/quantity";
import type { Store } from "../../state/store";

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
