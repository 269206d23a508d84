import type { AtlasHead, Shares } from "../../source/atlas";
import { percents } from "../../state/atlas";
import { MeanMap } from "./MeanMap";
import type { AtlasView } from "./parts";

/** Where the attention of a head goes: its mean map, by distance, by what a key is. */
export function Where({ view, at, said }: { view: AtlasView; at: number; said: AtlasHead }) {
  const color = view.colors[at];
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
