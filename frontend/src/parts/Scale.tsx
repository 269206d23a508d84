import { type Ramp, rampGradient } from "../draw/ramps";
import { ticksOf, WEIGHT_FACTS } from "../state/quantity";

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
      <span class="scale-bar" aria-hidden="true" style={{ "--ramp": rampGradient(ramp) }} />
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

/** Ticks of a weight scale, on which equal steps are equal steps of the square root. */
export const WEIGHT_TICKS = ticksOf(WEIGHT_FACTS, 1);
