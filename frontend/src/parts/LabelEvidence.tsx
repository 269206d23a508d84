import type { ComponentChildren } from "preact";
import type { PagePair, PageShown } from "../contract/page";
import type { Evidence } from "../source/evidence";
import { CANDIDATE, type HeadLabel, headPlace, labelWords, ONCE, shownFor } from "../state/evidence";
import { readable } from "../state/label";
import { openHead, pinPair } from "../state/selection";
import type { Store } from "../state/store";
import { counted, shortWeight } from "../state/words";
import { Mark, useMarks } from "./Mark";

interface LabelProps {
  store: Store;
  evidence: Evidence;
  head: number;
  label: HeadLabel;
  /** Whether what to look at is shown at once. */
  open: boolean;
}

/** One label of a head: its score beside baseline and threshold, how sure it is, and what to look at. */
export function LabelEvidence({ store, evidence, head, label, open }: LabelProps) {
  const { says, against } = evidence.said.patterns[label.pattern];
  const candidate = label.status === "candidate";
  const once = label.texts === 1;
  const shown = shownFor(evidence, head, label.pattern);
  const mark = useMarks(store)[label.pattern];
  return (
    <section class="label-evidence" data-evidence-of={label.name} data-candidate={candidate || undefined}>
      <h2>
        <Mark shape={mark} />
        <bdi>{label.name}</bdi>
        <b class="number">{shortWeight(label.score)}</b>
        {!once && (
          <small>
            [{shortWeight(label.low)}, {shortWeight(label.high)}]
          </small>
        )}
      </h2>
      <Strip label={label} color={mark.color} words={labelWords(label, evidence.said.confidence)} />
      <p>
        <bdi>{says}</bdi>
        {candidate && ` – ${once ? ONCE : CANDIDATE}`}
      </p>
      <p class="fine">
        baseline {shortWeight(label.baseline)} ({against}) · threshold {label.threshold}
        {!once && ` · ${sureness(label)}`}
      </p>
      {shown && (
        <Examples open={open}>
          <Pairs store={store} head={head} pairs={shown.pairs} />
          {!once && <Texts texts={evidence.said.examples} shown={shown} />}
        </Examples>
      )}
    </section>
  );
}

function Examples({ open, children }: { open: boolean; children: ComponentChildren }) {
  if (open) return <>{children}</>;
  return (
    <details>
      <summary>examples</summary>
      {children}
    </details>
  );
}

function sureness({ effect, corrected, texts }: HeadLabel): string {
  const size = Number.isFinite(effect) ? `${effect.toFixed(1)} standard deviations above it · ` : "";
  const chance = corrected < 0.001 ? "p < .001" : `p ${corrected.toFixed(3).slice(1)}`;
  return `${size}${chance} · ${counted(texts, "text")}`;
}

/** The score between 0 and 1, its interval, the baseline and the threshold. */
function Strip({ label: { score, low, high, baseline, threshold }, color, words }: StripProps) {
  const part = (value: number) => `${100 * Math.min(1, Math.max(0, value))}%`;
  return (
    <span
      class="strip"
      role="img"
      aria-label={`${words}, baseline ${shortWeight(baseline)}, threshold ${threshold}`}
      style={{ "--color": color }}
    >
      <span class="strip-bar" style={{ left: part(baseline), width: part(score - baseline) }} />
      {high > low && <span class="strip-interval" style={{ left: part(low), width: part(high - low) }} />}
      <span class="strip-threshold" style={{ left: part(threshold) }} />
      <span class="strip-score" style={{ left: part(score) }} />
    </span>
  );
}

interface StripProps {
  label: HeadLabel;
  color: string;
  words: string;
}

/** Pairs of tokens of the shown text; a click pins one in the head view. */
function Pairs({ store, head, pairs }: { store: Store; head: number; pairs: readonly PagePair[] }) {
  const { query: queries, key: keys } = store.stack.value;
  if (pairs.length === 0) return null;
  return (
    <ul class="pairs" aria-label="Strongest in the shown text">
      {pairs.map(({ query, key, weight }) => (
        <li key={`${query}-${key}`}>
          <button
            class="pair-link"
            data-pair={`${query}-${key}`}
            title="Pin this pair in the head view"
            onClick={() => {
              const { layer, head: number } = headPlace(store.stack.value, head);
              store.select((now) => ({
                ...pinPair(openHead(now, layer, number, store.stack.value), { query, key }),
                view: "head",
              }));
            }}
          >
            <bdi>{readable(queries.labels[query]).text}</bdi> → <bdi>{readable(keys.labels[key]).text}</bdi>
            <span class="number">{shortWeight(weight)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The texts on which the head follows the pattern most. */
function Texts({ texts, shown }: { texts: readonly string[]; shown: PageShown }) {
  if (shown.texts.length === 0) return null;
  return (
    <ul class="texts" aria-label="Texts with the highest scores">
      {shown.texts.map((text, place) => (
        <li key={`${place} ${text}`}>
          <span class="number">{shortWeight(shown.scores[place])}</span> <bdi>{readable(texts[text]).text}</bdi>
        </li>
      ))}
    </ul>
  );
}
