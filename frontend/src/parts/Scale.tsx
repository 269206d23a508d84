import { type Ramp, rampGradient } from "../draw/ramps";

interface ScaleProps {
  ramp: Ramp;
  /** What stands under the bar, each at a part (0 to 1) of its length. */
  ticks: readonly (readonly [part: number, text: string])[];
  label: string;
}

/** The colour scale of a picture, as a bar. */
export function Scale({ ramp, ticks, label }: ScaleProps) {
  return (
    <span class="scale stack muted" data-scale>
      <span class="scale-label">{label}</span>
      <span class="scale-bar" aria-hidden="true" style={{ "--ramp": rampGradient(ramp) }} />
      <span class="scale-ticks relative">
        {[...new Map(ticks.map(([part, text]) => [text, part]))].map(([text, part]) => (
          <span key={text} style={{ left: `${100 * part}%` }}>
            {text}
          </span>
        ))}
      </span>
    </span>
  );
}
