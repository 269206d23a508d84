import { type Ramp, rampGradient } from "../draw/ramps";
import { shortWeight } from "../state/words";

interface ScaleProps {
  ramp: Ramp;
  /** What stands under the bar, each at a part (0 to 1) of its length. */
  ticks: readonly (readonly [part: number, text: string])[];
  label: string;
}

/** The colour scale of a picture, as a bar. */
export function Scale({ ramp, ticks, label }: ScaleProps) {
  return (
    <span class="scale" data-scale>
      <span class="scale-label">{label}</span>
      <span class="scale-bar" aria-hidden="true" style={{ background: rampGradient(ramp) }} />
      <span class="scale-ticks">
        {ticks.map(([part, text]) => (
          <span key={text} style={{ left: `${100 * part}%` }}>
            {text}
          </span>
        ))}
      </span>
    </span>
  );
}

/** Ticks of a weight scale that ends at `top`, on which equal steps are equal steps of the square root. */
export function ticksTo(top: number): ScaleProps["ticks"] {
  return [0, 0.05, 0.25, 0.5, 1].map((part) => [Math.sqrt(part), part === 0 ? "0" : shortWeight(part * top)]);
}

export const WEIGHT_TICKS = ticksTo(1);
