import { useEffect, useMemo, useState } from "preact/hooks";
import { Mark } from "../../parts/Mark";
import type { AtlasEvidence, AtlasHead, AtlasText } from "../../source/atlas";
import { type AtlasPlace, shortShare } from "../../state/atlas";
import { Examples } from "./Examples";
import { FrequentPairs } from "./FrequentPairs";
import { HeadNav } from "./HeadNav";
import { type AtlasView, placeOf, Tile } from "./parts";
import { TextPage } from "./TextPage";
import { Where } from "./Where";

/** Everything that is known of one head; or one text as it sees it. */
export function HeadPage({ view, place }: { view: AtlasView; place: AtlasPlace }) {
  const [layer, number] = place.head ?? [0, 0];
  const { said, texts, failure } = useHead(view, layer, number);
  const at = placeOf(view.index, layer, number);
  const before = view.index.heads[at - 1];
  const after = view.index.heads[at + 1];
  const tile = view.index.heads[at];
  return (
    <>
      <header class="atlas-head">
        <HeadNav
          place={place}
          before={before && [before.layer, before.head]}
          after={after && [after.layer, after.head]}
          text={place.text ?? undefined}
        />
        <h1 tabIndex={-1}>
          Head {layer}-{number}
        </h1>
        <span class="label-chips">
          {tile?.labels.map(({ name, score, holds }) => (
            <span class="label-chip" key={name}>
              <Mark shape={view.marks.get(name)} />
              <bdi>{name}</bdi>
              <small>
                {shortShare(score)}
                {!holds && " candidate"}
              </small>
            </span>
          ))}
          {tile?.labels.length === 0 && <span class="facts">no label</span>}
        </span>
        <span class="facts">{view.index.model}</span>
      </header>
      {failure && (
        <p class="caution" role="alert">
          {failure}
        </p>
      )}
      {said && texts && place.text !== null && texts[place.text] && (
        <TextPage view={view} head={said} number={place.text} text={texts[place.text]} />
      )}
      {said && texts && place.text === null && <Everything view={view} at={at} said={said} texts={texts} />}
    </>
  );
}

interface EverythingProps {
  view: AtlasView;
  at: number;
  said: AtlasHead;
  texts: readonly AtlasText[];
}

function Everything({ view, at, said, texts }: EverythingProps) {
  return (
    <div class="atlas-page">
      <Where view={view} at={at} said={said} />
      <section class="card atlas-card" aria-label="Labels">
        <h2>Labels, with their evidence</h2>
        <Labels view={view} labels={said.labels} />
      </section>
      <FrequentPairs pairs={said.pairs} texts={view.index.texts} side={view.side} />
      <section class="card atlas-card" aria-label="Neighbours">
        <h2>Heads most alike</h2>
        <div class="atlas-neighbours">
          {said.neighbours.map(([layer, head, alike]) => (
            <Tile
              key={`${layer}-${head}`}
              view={view}
              at={placeOf(view.index, layer, head)}
              note={shortShare(alike)}
              named
            />
          ))}
        </div>
        <p class="fine">
          1 where every query attends alike in both heads, 0 where they share no key; mean over all queries.
        </p>
      </section>
      <Examples view={view} said={said} texts={texts} />
    </div>
  );
}

/** The patterns that were looked for: those that hold in full, the others in a line each. */
function Labels({ view, labels }: { view: AtlasView; labels: readonly AtlasEvidence[] }) {
  const told = labels.filter(({ holds, candidate }) => holds || candidate);
  const rest = labels.filter(({ holds, candidate }) => !(holds || candidate));
  return (
    <>
      {told.length === 0 && <p class="fine">It holds none of the {labels.length} patterns that were looked for.</p>}
      {told.map((label) => (
        <Label key={label.name} view={view} label={label} />
      ))}
      {rest.length > 0 && (
        <details class="atlas-rest">
          <summary>{rest.length} patterns that it does not hold</summary>
          <ul>
            {rest.map(({ name, score, baseline, threshold }) => (
              <li key={name}>
                <bdi>{name}</bdi> {shortShare(score)}, baseline {shortShare(baseline)}, threshold{" "}
                {shortShare(threshold)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Label({ view, label }: { view: AtlasView; label: AtlasEvidence }) {
  const { name, score, low, high, baseline, threshold, against, candidate, texts, on } = label;
  const mark = view.marks.get(name);
  const says = view.index.patterns.find((pattern) => pattern.name === name)?.says;
  const part = (value: number | null) => `${100 * Math.min(1, Math.max(0, value ?? 0))}%`;
  const strip = `${name} ${shortShare(score)}, baseline ${shortShare(baseline)}, threshold ${shortShare(threshold)}`;
  return (
    <section class="label-evidence" data-candidate={candidate || undefined}>
      <h3>
        <Mark shape={mark} />
        <bdi>{name}</bdi>
        <b class="number">{shortShare(score)}</b>
        {low !== null && (
          <small>
            [{shortShare(low)}, {shortShare(high)}]
          </small>
        )}
      </h3>
      <span class="strip" role="img" aria-label={strip} style={{ "--color": mark?.color ?? "var(--muted)" }}>
        <span class="strip-bar" style={{ left: part(baseline), width: part(score - (baseline ?? 0)) }} />
        {low !== null && high !== null && (
          <span class="strip-interval" style={{ left: part(low), width: part(high - low) }} />
        )}
        <span class="strip-threshold" style={{ left: part(threshold) }} />
        <span class="strip-score" style={{ left: part(score) }} />
      </span>
      <p>
        <bdi>{says}</bdi>
        {candidate && " – a candidate: too few texts to tell it from chance"}
      </p>
      <p class="fine">
        baseline {shortShare(baseline)} ({against}) · threshold {shortShare(threshold)} · {sureness(label)} ·{" "}
        {texts.toLocaleString("en")} {on}
      </p>
    </section>
  );
}

function sureness({ effect, corrected }: AtlasEvidence): string {
  const size = effect === null ? "" : `${effect.toFixed(1)} standard deviations above it · `;
  if (corrected === null) return `${size}p not known`;
  return `${size}${corrected < 0.001 ? "p < .001" : `p ${corrected.toFixed(3).slice(1)}`}`;
}

export function useHead({ source }: AtlasView, layer: number, head: number) {
  const [said, setSaid] = useState<AtlasHead | null>(null);
  const [texts, setTexts] = useState<readonly AtlasText[] | null>(null);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    const fail = (error: Error) => setFailure(error.message);
    source.head(layer, head).then(setSaid, fail);
    source.texts().then(setTexts, fail);
  }, [source, layer, head]);
  return useMemo(() => ({ said, texts, failure }), [said, texts, failure]);
}
