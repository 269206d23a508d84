import { kindRamp } from "../../draw/kinds";
import { rampCss, signedRamp } from "../../draw/ramps";
import type { Store } from "../../state/store";

/** The scale of all tiles, in the hue of heads that rest: the same lightness means the same weight in every hue. */
export function WeightScale({ store: { quantity, dark } }: { store: Store }) {
  const { signed, per, label, name } = quantity.value;
  const diverging = signed && per === "head";
  const ramp = diverging ? signedRamp(dark.value) : kindRamp("resting", dark.value);
  const stops = Array.from({ length: 11 }, (_, step) =>
    rampCss(ramp, Math.round(255 * (diverging ? step / 10 : Math.sqrt(step / 10)))),
  );
  const [low, high] = diverging ? ["below 0", "above"] : ["0", name === "weight" ? "1" : "most"];
  return (
    <span class="weight-scale" data-signed={diverging || undefined}>
      {per === "head" ? label : "weight"} {low}
      <i style={{ background: `linear-gradient(90deg, ${stops.join(", ")})` }} />
      {high}
    </span>
  );
}
