import { useLayoutEffect, useRef } from "preact/hooks";
import { rampColor, signedByte, signedRamp } from "../../../draw/ramps";
import type { AtlasHead } from "../../../source/atlas";
import type { ComparedPair } from "../../../source/atlasComparison";
import { percents } from "../../../state/atlas";
import { mapDifference } from "../../../state/atlasComparison";
import { MeanMap } from "../MeanMap";
import type { ComparisonView } from "./view";

interface PairWhereProps {
  view: ComparisonView;
  pair: ComparedPair;
  a: AtlasHead;
  b: AtlasHead;
}

/** Where the attention of both heads goes: mean maps and their difference, by distance, by what a key is. */
export function PairWhere({ view, pair, a, b }: PairWhereProps) {
  const { index } = view;
  const [before, after] = index.names;
  return (
    <section class="card atlas-card atlas-where twin-where" aria-label="Where their attention goes">
      <h2>Where their attention goes</h2>
      <div class="twin-means">
        <figure>
          <MeanMap view={view.a} at={pair.a} label={`Mean map in ${before}`} />
          <figcaption>
            <bdi>{before}</bdi>
          </figcaption>
        </figure>
        <figure>
          <MeanMap view={view.b} at={pair.b} label={`Mean map in ${after}`} />
          <figcaption>
            <bdi>{after}</bdi>
          </figcaption>
        </figure>
        <DifferenceMap view={view} pair={pair} />
      </div>
      <BothCurves view={view} a={a} b={b} />
      <BothKinds view={view} a={a} b={b} />
    </section>
  );
}

/** The mean map of B less that of A. */
function DifferenceMap({ view, pair }: { view: ComparisonView; pair: ComparedPair }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = 2 * view.index.a.side;
  const values = mapDifference({ maps: view.a.maps, at: pair.a }, { maps: view.b.maps, at: pair.b }, width);
  // Below a twentieth the picture would be noise in full colours.
  const most = Math.max(0.05, ...values.map(Math.abs));
  useLayoutEffect(() => {
    const ramp = signedRamp(view.a.dark);
    const image = new ImageData(width, width);
    values.forEach((value, cell) => {
      image.data.set([...rampColor(ramp, signedByte(value, most)), 255], 4 * cell);
    });
    canvas.current?.getContext("2d")?.putImageData(image, 0, 0);
  }, [view, values, most, width]);
  return (
    <figure>
      <canvas
        class="atlas-map"
        ref={canvas}
        width={width}
        height={width}
        role="img"
        aria-label={`Difference of both, up to ${percents(most)}`}
      />
      <figcaption>difference: blue more, orange less; full colour {percents(most)}</figcaption>
    </figure>
  );
}

const HIGH = 130;
const BAR = 11;

/** Share of the attention by distance: bars for A, a line for B. */
function BothCurves({ view: { index }, a, b }: Omit<PairWhereProps, "pair">) {
  const { distances } = index.a;
  const both = a.distance.map(([share], at) => ({ at, a: share, b: b.distance[at][0] }));
  const there = both.filter((each) => each.a + each.b > 0.001);
  const first = Math.min(...there.map(({ at }) => at));
  const shown = both.slice(first, Math.max(...there.map(({ at }) => at)) + 1);
  const most = Math.max(0.05, ...shown.flatMap((each) => [each.a, each.b]));
  const y = (share: number) => HIGH - (HIGH * share) / most;
  const itself = (distances.length - 1) / 2 - first;
  const line = shown.map((each, at) => `${at * BAR},${y(each.b)} ${(at + 1) * BAR},${y(each.b)}`).join(" ");
  const changed = shown.reduce((best, each) => (Math.abs(each.b - each.a) > Math.abs(best.b - best.a) ? each : best));
  return (
    <figure class="atlas-curve">
      <svg
        viewBox={`-2 -4 ${shown.length * BAR + 4} ${HIGH + 20}`}
        role="img"
        aria-label={`Attention by distance; it differs most ${distances[changed.at]}: ${percents(changed.a)} and ${percents(changed.b)}`}
      >
        {shown.map((each, at) => (
          <rect
            key={each.at}
            class="twin-bars"
            x={at * BAR + 1}
            y={y(each.a)}
            width={BAR - 2}
            height={HIGH - y(each.a)}
          >
            <title>
              {distances[each.at]}: {percents(each.a)} and {percents(each.b)}
            </title>
          </rect>
        ))}
        <polyline class="twin-over" points={line} />
        <text x={(itself + 0.5) * BAR} y={HIGH + 13} text-anchor="middle">
          itself
        </text>
        <text x={0} y={HIGH + 13}>
          ← before
        </text>
        <text x={shown.length * BAR} y={HIGH + 13} text-anchor="end">
          after →
        </text>
      </svg>
      <figcaption>
        by distance in tokens: bars <bdi>{index.names[0]}</bdi>, line <bdi>{index.names[1]}</bdi>
      </figcaption>
    </figure>
  );
}

/** Share of the attention by what the key is. */
function BothKinds({ view: { index }, a, b }: Omit<PairWhereProps, "pair">) {
  const rows = index.a.classes.map((name, key) => ({ name, a: a.keys[key] ?? 0, b: b.keys[key] ?? 0 }));
  return (
    <table class="atlas-kinds">
      <caption>what they look at</caption>
      <thead>
        <tr>
          <th scope="col">key</th>
          <th scope="col">
            <bdi>{index.names[0]}</bdi>
          </th>
          <th scope="col">
            <bdi>{index.names[1]}</bdi>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, ...shares }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td style={{ "--part": shares.a, "--color": "var(--muted)" }}>{percents(shares.a)}</td>
            <td style={{ "--part": shares.b, "--color": "var(--accent)" }}>{percents(shares.b)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
