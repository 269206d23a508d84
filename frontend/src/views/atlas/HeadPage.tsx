import { useEffect, useMemo, useState } from "preact/hooks";
import { kindColor } from "../../draw/kinds";
import { Mark } from "../../parts/Mark";
import type { AtlasEvidence, AtlasHead, AtlasStratum, AtlasText, Shares } from "../../source/atlas";
import { type AtlasPlace, headAddress, kindOfTile, percents, shortShare } from "../../state/atlas";
import { counted } from "../../state/words";
import { ExampleWords, MiniLines } from "./ExampleWords";
import { FrequentPairs } from "./FrequentPairs";
import { type AtlasView, HeadNav, MeanMap, placeOf, Tile } from "./parts";
import { TextPage } from "./TextPage";

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

const NAMES = ["lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth"];

interface ExamplesProps {
  view: AtlasView;
  said: AtlasHead;
  texts: readonly AtlasText[];
}

/** Texts of five strata of the head's score, the highest first. */
function Examples({ view, said, texts }: ExamplesProps) {
  const strata = [...said.strata].reverse();
  return (
    <section class="card atlas-card atlas-examples" aria-label="Examples">
      <h2>
        Examples, from high to low{" "}
        {said.score === "confidence" ? "confidence (the largest weight of a query)" : said.score}
      </h2>
      <Spread said={said} />
      {strata.map((stratum) => (
        <section key={stratum.low} class="atlas-stratum" aria-label={range(stratum)}>
          <h3>
            {strata.length === 5 && `${NAMES[4 - strata.indexOf(stratum)]}: `}
            {range(stratum)} <small>{counted(stratum.texts, "text")}</small>
          </h3>
          <ul>
            {stratum.examples.map((number) => (
              <li key={number}>
                <a class="atlas-example" href={headAddress(said.layer, said.head, number, view.side)}>
                  <span class="atlas-example-score number">{shortShare(said.scores[number])}</span>
                  <MiniLines view={view} said={said} number={number} text={texts[number]} />
                  <ExampleWords view={view} said={said} number={number} text={texts[number]} />
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="fine">
        Four texts of each fifth, drawn evenly from a sample of {texts.length} that is the same for all heads; fifths
        are of all {view.index.texts.toLocaleString("en")} texts
        {strata.length < 5 && ", and fall together where many score alike"}. Words: the darker, the more of the
        strongest links end there; the strongest link between words is marked. A click opens the text.
      </p>
    </section>
  );
}

function range({ low, high }: AtlasStratum): string {
  return `${shortShare(low)} to ${shortShare(high)}`;
}

/** How many texts have which score. */
function Spread({ said: { spread, strata, score } }: { said: AtlasHead }) {
  const most = Math.max(1, ...spread);
  const bins = spread.length;
  const fifthOf = (bin: number) => strata.findIndex(({ low, high }) => bin / bins >= low && bin / bins < high);
  return (
    <svg class="atlas-spread" viewBox={`0 0 ${4 * bins} 62`} role="img" aria-label={`Texts by ${score}, from 0 to 1`}>
      {spread.map((count, bin) => (
        <rect
          key={bin}
          x={4 * bin}
          y={48 - (46 * count) / most}
          width={3.4}
          height={(46 * count) / most}
          data-odd={fifthOf(bin) % 2 === 1 || undefined}
        />
      ))}
      <path d={`M0 48.5H${4 * bins}`} />
      {[0, 0.25, 0.5, 0.75, 1].map((tick) => (
        <text key={tick} x={4 * bins * tick} y={60} text-anchor={tick === 0 ? "start" : tick === 1 ? "end" : "middle"}>
          {shortShare(tick)}
        </text>
      ))}
    </svg>
  );
}

/** Where the attention of a head goes: its mean map, by distance, by what a key is. */
function Where({ view, at, said }: { view: AtlasView; at: number; said: AtlasHead }) {
  const color = kindColor(kindOfTile(view.index.heads[at]), view.dark);
  const { side } = view.index;
  return (
    <section class="card atlas-card atlas-where" aria-label="Where its attention goes" style={{ "--color": color }}>
      <h2>Where its attention goes</h2>
      <div class="atlas-where-body">
        <figure class="atlas-mean">
          <MeanMap view={view} at={at} label={`Mean attention of the first ${side} and last ${side} tokens`} />
          <figcaption>
            mean map: first {side} and last {side} tokens; rows look
          </figcaption>
        </figure>
        <Curve distances={view.index.distances} shares={said.distance} />
        <Kinds classes={view.index.classes} said={said} />
      </div>
    </section>
  );
}

const HEIGHT = 130;
const BAR = 11;

/** Share of the attention by distance, as bars, and of even attention, as a line. */
function Curve({ distances, shares }: { distances: readonly string[]; shares: readonly Shares[] }) {
  const there = shares
    .map(([share, even], at) => ({ at, share, even }))
    .filter(({ share, even }) => share + even > 0.0005);
  const first = Math.min(...there.map(({ at }) => at));
  const last = Math.max(...there.map(({ at }) => at));
  const shown = shares.slice(first, last + 1);
  const most = Math.max(0.05, ...shown.flat());
  const y = (share: number) => HEIGHT - (HEIGHT * share) / most;
  const itself = (distances.length - 1) / 2 - first;
  const line = shown.map(([, even], at) => `${at * BAR},${y(even)} ${(at + 1) * BAR},${y(even)}`).join(" ");
  const strongest = shown.reduce((best, [share], at) => (share > shown[best][0] ? at : best), 0);
  return (
    <figure class="atlas-curve">
      <svg
        viewBox={`-2 -4 ${shown.length * BAR + 4} ${HEIGHT + 20}`}
        role="img"
        aria-label={`Most attention goes ${distances[first + strongest]}: ${percents(shown[strongest][0])}, of even attention ${percents(shown[strongest][1])}`}
      >
        {shown.map(([share, even], at) => (
          <rect
            key={distances[first + at]}
            class="atlas-bar"
            x={at * BAR + 1}
            y={y(share)}
            width={BAR - 2}
            height={HEIGHT - y(share)}
            data-itself={at === itself || undefined}
          >
            <title>
              {distances[first + at]}: {percents(share)} (even {percents(even)})
            </title>
          </rect>
        ))}
        <polyline class="atlas-even" points={line} />
        <text x={(itself + 0.5) * BAR} y={HEIGHT + 13} text-anchor="middle">
          itself
        </text>
        <text x={0} y={HEIGHT + 13}>
          ← before
        </text>
        <text x={shown.length * BAR} y={HEIGHT + 13} text-anchor="end">
          after →
        </text>
      </svg>
      <figcaption>
        by distance in tokens, farther ones pooled; most {distances[first + strongest]}, {percents(shown[strongest][0])}
        ; line: even attention
      </figcaption>
    </figure>
  );
}

/** Share of the attention by what the key is. */
function Kinds({ classes, said }: { classes: readonly string[]; said: AtlasHead }) {
  const rows: [name: string, shares: Shares][] = [
    ...Object.entries(said.relations),
    ...classes.map((name, key): [string, Shares] => [name, sums(said, key)]),
  ];
  const hasNorms = Object.keys(said.norms).length > 0;
  return (
    <table class="atlas-kinds">
      <caption>
        what it looks at{hasNorms && "; of norms: share of the lengths of what it adds, attention times ‖f(x)‖"}
      </caption>
      <thead>
        <tr>
          <th scope="col">key</th>
          <th scope="col">share</th>
          <th scope="col">even</th>
          {hasNorms && <th scope="col">of norms</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, [share, even]]) => (
          <tr key={name}>
            <th scope="row">{RELATION_WORDS[name] ?? CLASS_WORDS[name] ?? name}</th>
            <td style={{ "--part": share }}>{percents(share)}</td>
            <td>{percents(even)}</td>
            {hasNorms && <td>{percents(said.norms[name] ?? 0)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const RELATION_WORDS: Readonly<Record<string, string>> = {
  itself: "the token itself",
  previous: "the token before",
  next: "the token after",
  "same word": "the same word elsewhere",
  "own word": "the rest of its word",
};
const CLASS_WORDS: Readonly<Record<string, string>> = {
  first: "the first token",
  special: "other special tokens",
  number: "numbers",
  word: "words",
  "rest of a word": "later pieces of words",
};

function sums(said: AtlasHead, key: number): Shares {
  return [said.keys[key] ?? 0, said.evenKeys[key] ?? 0];
}
