import type { Evidence } from "../source/evidence";
import { type HeadLabel, headName, labelsOf, measured, measureNumber } from "../state/evidence";
import type { Store } from "../state/store";
import { counted, percent, shortWeight } from "../state/words";
import { LabelEvidence } from "./LabelEvidence";

/** What is known of the head under the pointer, or of the one that is shown. */
export function HeadCard({ store }: { store: Store }) {
  const evidence = store.evidence.value;
  if (!evidence) return null;
  const head = store.peeked.value ?? store.full.value;
  return (
    <aside class="card head-card" aria-label="Evidence" data-head-card={headName(evidence, head)}>
      <OneHead store={store} evidence={evidence} head={head} />
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

interface HeadProps {
  store: Store;
  evidence: Evidence;
  head: number;
}

function OneHead({ store, evidence, head }: HeadProps) {
  const labels = labelsOf(evidence, head);
  const told = labels.filter(({ status }) => status !== "none");
  const rest = labels.filter(({ status }) => status === "none");
  return (
    <>
      <div class="heading">
        <small>head</small>
        <strong>{headName(evidence, head)}</strong>
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
      {rest.length > 0 && <Rest evidence={evidence} labels={rest} />}
      <Measures evidence={evidence} head={head} />
    </>
  );
}

/** Patterns that the head does not follow, or not enough. */
function Rest({ evidence, labels }: { evidence: Evidence; labels: readonly HeadLabel[] }) {
  return (
    <details>
      <summary>{counted(labels.length, "pattern")} without a label</summary>
      <ul class="rest">
        {labels.map(({ name, score, pattern }) => (
          <li key={name}>
            <bdi>{name}</bdi>
            <span class="number">{shortWeight(score)}</span>
            <small>of {evidence.said.patterns[pattern].threshold}</small>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Measures({ evidence, head }: { evidence: Evidence; head: number }) {
  const names = evidence.said.measures.map(({ name }) => name).filter((name) => name !== "layer");
  const value = (name: string) => measured(evidence, name)[head];
  const classes = names
    .filter((name) => name.startsWith("class ") && value(name) > 0)
    .sort((a, b) => value(b) - value(a))
    .map((name) => `${name.slice(6)} ${percent(value(name))}`);
  return (
    <dl class="measures">
      {names
        .filter((name) => !name.startsWith("class ") && !Number.isNaN(value(name)))
        .map((name) => (
          <div key={name} title={evidence.said.measures.find((measure) => measure.name === name)?.says}>
            <dt>{name}</dt>
            <dd>{measureNumber(evidence, name, value(name))}</dd>
          </div>
        ))}
      <div title="Kovaleva's classes of maps, as shares of the texts">
        <dt>maps</dt>
        <dd>{classes.join(", ")}</dd>
      </div>
    </dl>
  );
}
