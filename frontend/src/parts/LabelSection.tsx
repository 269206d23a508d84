import type { ComponentChildren } from "preact";
import type { Mark as Shape } from "../draw/marks";
import { shortWeight } from "../state/words";
import { Mark } from "./Mark";

/** A pattern of a head with its numbers; null or NaN is not known. */
interface Told {
  readonly name: string;
  readonly score: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly baseline: number | null;
  readonly threshold: number;
  readonly effect: number | null;
  readonly corrected: number | null;
}

interface LabelSectionProps {
  label: Told;
  mark: Shape | undefined;
  says: string | undefined;
  /** What the baseline is. */
  against: string;
  /** Why it does not hold; empty where it does. */
  caution: string;
  /** Over how many texts it is sure; empty where there is one. */
  sure: string;
  children?: ComponentChildren;
}

/** One label of a head: its score beside baseline and threshold, how sure it is, and what to look at. */
export function LabelSection({ label, mark, says, against, caution, sure, children }: LabelSectionProps) {
  const { name, score, threshold } = label;
  const baseline = label.baseline ?? Number.NaN;
  const [low, high] = [label.low ?? Number.NaN, label.high ?? Number.NaN];
  const part = (value: number) => `${100 * Math.min(1, Math.max(0, value || 0))}%`;
  const between = `baseline ${number(baseline)}, threshold ${number(threshold)}`;
  return (
    <section class="label-evidence stack" data-evidence-of={name} data-candidate={caution !== "" || undefined}>
      <h2>
        <Mark shape={mark} />
        <bdi>{name}</bdi>
        <b class="number">{number(score)}</b>
        {high >= low && sure && (
          <small>
            [{number(low)}, {number(high)}]
          </small>
        )}
      </h2>
      <span
        class="strip relative"
        role="img"
        aria-label={`${name} ${number(score)}, ${sure && `from ${number(low)} to ${number(high)}, `}${between}`}
        style={{ "--color": mark?.color ?? "var(--muted)" }}
      >
        <span class="strip-bar" style={{ left: part(baseline), width: part(score - (baseline || 0)) }} />
        {high > low && <span class="strip-interval" style={{ left: part(low), width: part(high - low) }} />}
        <span class="strip-threshold" style={{ left: part(threshold) }} />
        <span class="strip-score" style={{ left: part(score) }} />
      </span>
      <p>
        <bdi>{says}</bdi>
        {caution && ` – ${caution}`}
      </p>
      <p class="fine">
        baseline {number(baseline)} ({against}) · threshold {number(threshold)}
        {sure && ` · ${sureness(label)} · ${sure}`}
      </p>
      {children}
    </section>
  );
}

function number(value: number): string {
  return Number.isNaN(value) ? "–" : shortWeight(value);
}

function sureness({ effect, corrected }: Told): string {
  const size = Number.isFinite(effect ?? Number.NaN) ? `${effect?.toFixed(1)} standard deviations above it · ` : "";
  if (corrected === null) return `${size}p not known`;
  return `${size}${corrected < 0.001 ? "p < .001" : `p ${corrected.toFixed(3).slice(1)}`}`;
}
