import type { ComponentChildren } from "preact";
import type { PagePair, PageShown } from "../../types/page";
import { kindColor, kindOfLabel } from "../draw/kinds";
import type { AtlasEvidence } from "../source/atlas";
import type { Evidence } from "../source/heads";
import { CANDIDATE, type HeadLabel, headName, labelsOf, ONCE, shownFor } from "../state/evidence";
import { keepHead, pinPair } from "../state/selection";
import type { Store } from "../state/store";
import { counted, percent, readable, shortWeight } from "../state/words";
import { LabelIcon } from "./legend";

/** What is known of the head under the pointer, or of the one that is shown. */
export function HeadCard({ store }: { store: Store }) {
  const evidence = store.evidence.value;
  if (!evidence) return null;
  const head = store.peeked.value ?? store.full.value;
  const labels = labelsOf(evidence, head);
  const told = labels.filter(({ status }) => status !== "none");
  const rest = labels.filter(({ status }) => status === "none");
  return (
    <aside class="card head-card slim" aria-label="Evidence" data-head-card={headName(evidence, head)}>
      <div class="heading stack">
        <small>head</small>
        <strong class="cut">{headName(evidence, head)}</strong>
      </div>
      {evidence.said.caution && <p class="caution">{evidence.said.caution}.</p>}
      {told.length === 0 && <p class="hint">No label: of {counted(labels.length, "pattern")} none holds here.</p>}
      {told.map((label, place) => (
        <LabelEvidence
          key={label.name}
          store={store}
          evidence={evidence}
          head={head}
          label={label}
          open={place === 0}
        />
      ))}
      <Rest labels={rest} />
      <Measures evidence={evidence} head={head} />
      <p class="fine">{method(evidence)}</p>
    </aside>
  );
}

function method({ said }: Evidence): string {
  const length = said.tokens === null ? "" : ` of ${Math.round(said.tokens)} tokens`;
  if (said.texts === 1) return `Measured on one text${length}: more texts give intervals, and labels that hold.`;
  const interval = `${Math.round(100 * said.confidence)} % intervals over ${counted(said.texts, "text")}${length}`;
  return `${interval}; corrected for trying all heads and patterns (${said.correction}).`;
}

/** Patterns that a head does not follow, or not enough. */
export function Rest({ labels }: { labels: readonly Pick<Told, "name" | "score" | "baseline" | "threshold">[] }) {
  if (labels.length === 0) return null;
  return (
    <details>
      <summary>{counted(labels.length, "pattern")} without a label</summary>
      <ul class="rest">
        {labels.map(({ name, score, baseline, threshold }) => (
          <li key={name} class="stack">
            <bdi>{name}</bdi>
            <span class="number">{shortWeight(score)}</span>
            <small>{`of ${threshold}${baseline === null ? "" : `, baseline ${shortWeight(baseline)}`}`}</small>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Measures({ evidence: { said, stack, values }, head }: { evidence: Evidence; head: number }) {
  const heads = stack.layers.length * stack.heads;
  const all = said.measures.map((measure, at) => ({ ...measure, value: values[at * heads + head] }));
  const isClass = ({ name }: { name: string }) => name.startsWith("class ");
  const classes = all
    .filter((measure) => isClass(measure) && measure.value > 0)
    .sort((a, b) => b.value - a.value)
    .map(({ name, value }) => `${name.slice(6)} ${percent(value)}`);
  return (
    <dl class="measures ruled stack">
      {all
        .filter((measure) => measure.name !== "layer" && !isClass(measure) && !Number.isNaN(measure.value))
        .map(({ name, says, unit, value }) => (
          <div key={name} title={says}>
            <dt>{name}</dt>
            <dd>{unit ? `${value.toFixed(2)} ${unit}` : shortWeight(value)}</dd>
          </div>
        ))}
      <div title="Kovaleva's classes of maps, as shares of the texts">
        <dt>maps</dt>
        <dd>{classes.join(", ")}</dd>
      </div>
    </dl>
  );
}

interface LabelProps {
  store: Store;
  evidence: Evidence;
  head: number;
  label: HeadLabel;
  /** Whether what to look at is shown at once. */
  open: boolean;
}

/** One label of a head: its score beside baseline and threshold, how sure it is, and what to look at. */
function LabelEvidence({ store, evidence, head, label, open }: LabelProps) {
  const { says, against } = evidence.said.patterns[label.pattern];
  const candidate = label.status === "candidate";
  const once = label.texts === 1;
  const shown = shownFor(evidence, head, label.pattern);
  return (
    <LabelSection
      label={label}
      dark={store.dark.value}
      says={says}
      against={against}
      caution={candidate ? (once ? ONCE : CANDIDATE) : ""}
      sure={once ? "" : counted(label.texts, "text")}
    >
      {shown && (
        <details open={open}>
          <summary>examples</summary>
          <Pairs store={store} head={head} pairs={shown.pairs} />
          {!once && <Texts texts={evidence.said.examples} shown={shown} />}
        </details>
      )}
    </LabelSection>
  );
}

/** Pairs of tokens of the shown text; a click pins one in the head view. */
function Pairs({ store, head, pairs }: { store: Store; head: number; pairs: readonly PagePair[] }) {
  const { query: queries, key: keys } = store.stack.value;
  if (pairs.length === 0) return null;
  return (
    <ul class="pairs flex wrap" aria-label="Strongest in the shown text">
      {pairs.map(({ query, key, weight }) => (
        <li key={`${query}-${key}`}>
          <button
            class="pair-link left"
            data-pair={`${query}-${key}`}
            title="Pin this pair in the head view"
            onClick={() =>
              store.select((now) => ({
                ...pinPair(keepHead(now, head, store.stack.value), { query, key }),
                view: "head",
              }))
            }
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
    <ul class="texts stack" aria-label="Texts with the highest scores">
      {shown.texts.map((text, place) => (
        <li key={`${place} ${text}`} class="stack">
          <span class="number">{shortWeight(shown.scores[place])}</span> <bdi>{readable(texts[text]).text}</bdi>
        </li>
      ))}
    </ul>
  );
}

/** A pattern of a head with its numbers; null or NaN is not known. */
type Told = Pick<AtlasEvidence, "name" | "score" | "low" | "high" | "baseline" | "threshold" | "effect" | "corrected">;

interface LabelSectionProps {
  label: Told;
  dark: boolean;
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
export function LabelSection({ label, dark, says, against, caution, sure, children }: LabelSectionProps) {
  const { name, score, threshold } = label;
  const baseline = label.baseline ?? Number.NaN;
  const [low, high] = [label.low ?? Number.NaN, label.high ?? Number.NaN];
  const part = (value: number) => `${100 * Math.min(1, Math.max(0, value || 0))}%`;
  const between = `baseline ${number(baseline)}, threshold ${number(threshold)}`;
  return (
    <section class="label-evidence ruled stack" data-evidence-of={name} data-candidate={caution !== "" || undefined}>
      <h2 class="row">
        <LabelIcon name={name} dark={dark} />
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
        style={{ "--color": kindColor(kindOfLabel(name) ?? "none", dark) }}
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
