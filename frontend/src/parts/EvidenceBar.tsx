import type { ComponentChildren } from "preact";
import type { Evidence } from "../source/evidence";
import { axisGroups, isFiltered, labelCounts, wantedLabels } from "../state/evidence";
import type { Store } from "../state/store";
import { counted } from "../state/words";
import { Mark, useMarks } from "./Mark";

/** Which labels there are, and the choice of those whose heads stand out. */
export function EvidenceBar({ store, children }: { store: Store; children?: ComponentChildren }) {
  const evidence = store.evidence.value;
  if (!evidence) return null;
  return (
    <div class="evidence-bar" data-evidence>
      <LabelChoice store={store} evidence={evidence} />
      <LeastScore store={store} />
      {children}
      <EvidenceNote store={store} evidence={evidence} />
    </div>
  );
}

function LabelChoice({ store, evidence }: { store: Store; evidence: Evidence }) {
  const marks = useMarks(store);
  const chosen = store.selection.value.label;
  const counts = labelCounts(evidence);
  return (
    <div class="label-chips" role="group" aria-label="Heads that stand out">
      {evidence.said.patterns.map(({ name, says, threshold }, pattern) => (
        <button
          key={name}
          class="label-chip"
          data-label={name}
          aria-pressed={chosen === name}
          disabled={counts[pattern] === 0 && chosen !== name}
          title={`${says}; a label from a score of ${threshold} on`}
          onClick={() => store.select((now) => ({ ...now, label: now.label === name ? null : name }))}
        >
          <Mark shape={marks[pattern]} />
          <bdi>{name}</bdi>
          <small>{counts[pattern]}</small>
        </button>
      ))}
    </div>
  );
}

function LeastScore({ store }: { store: Store }) {
  const { min_score: least } = store.selection.value;
  return (
    <label class="choice" title="Heads stand out whose label has at least this score">
      <span>score from</span>
      <input
        type="range"
        data-min-score
        min={0}
        max={100}
        step={5}
        value={least}
        aria-valuetext={`${least} %`}
        onInput={(event) => {
          const wanted = Number(event.currentTarget.value);
          store.choose({ min_score: wanted });
        }}
      />
      <output class="share">{(least / 100).toFixed(2)}</output>
    </label>
  );
}

/** How sure all of it is, in plain words. */
function EvidenceNote({ store, evidence }: { store: Store; evidence: Evidence }) {
  const { said, stack } = evidence;
  const heads = stack.layers.length * stack.heads;
  const selection = store.selection.value;
  const told = [...Array(heads).keys()].filter((head) => wantedLabels(evidence, head, selection).length > 0).length;
  const shown = isFiltered(selection)
    ? `${told} of ${counted(heads, "head")} stand out`
    : `${told} of ${counted(heads, "head")} with a label`;
  const other = said.model && store.page.model.name && said.model !== store.page.model.name;
  return (
    <>
      <small class="view-note" data-told>
        {shown} · {counted(said.texts, "text")}
        {other && (
          <>
            {" "}
            of <bdi>{said.model}</bdi>
          </>
        )}
      </small>
      {said.caution && (
        <small class="caution" data-caution>
          {said.caution}.
        </small>
      )}
    </>
  );
}

interface AxisChoiceProps {
  evidence: Evidence;
  label: string;
  chosen: string;
  /** Choices that stand before the groups: value and text. */
  first?: readonly (readonly [string, string])[];
  onChoose: (name: string) => void;
}

/** One of all measures, scores and classes. */
export function AxisChoice({ evidence, label, chosen, first = [], onChoose }: AxisChoiceProps) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select data-axis={label} value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
        {first.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        {Object.entries(axisGroups(evidence)).map(([group, names]) => (
          <optgroup key={group} label={group}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name.replace(/^class /, "")}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}
