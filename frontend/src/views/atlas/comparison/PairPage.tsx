import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { rampColor, signedByte, signedRamp } from "../../../draw/ramps";
import { Mark } from "../../../parts/Mark";
import type { AtlasHead, AtlasText } from "../../../source/atlas";
import type { ComparedPair } from "../../../source/atlasComparison";
import { headAddress, percents, shortShare } from "../../../state/atlas";
import { type ComparedSide, headName, mapDifference, pairAddress } from "../../../state/atlasComparison";
import { ExampleWords, MiniLines } from "../ExampleWords";
import { FrequentPairs } from "../FrequentPairs";
import { useHead } from "../HeadPage";
import { type AtlasView, MeanMap } from "../parts";
import { Changes } from "./Changes";
import type { ComparisonView } from "./ComparisonPlace";

const SIDES: readonly ComparedSide[] = ["a", "b"];

/** Both heads of a pair: where their attention goes, their scores, words and examples. */
export function PairPage({ view, number }: { view: ComparisonView; number: number }) {
  const { index } = view;
  const pair = index.pairs[number];
  const heads = { a: index.a.heads[pair.a], b: index.b.heads[pair.b] };
  const a = useHead(view.a, heads.a.layer, heads.a.head);
  const b = useHead(view.b, heads.b.layer, heads.b.head);
  const failure = a.failure || b.failure;
  return (
    <>
      <header class="atlas-head">
        <PairNav view={view} number={number} />
        <h1 tabIndex={-1}>
          Head {headName(index, "a", pair.a)} → {headName(index, "b", pair.b)}
        </h1>
        <span class="label-chips">
          {[...pair.lost, ...pair.gained].map((name) => (
            <span class="label-chip" key={name}>
              <Mark shape={view.a.marks.get(name) ?? view.b.marks.get(name)} />
              <bdi>{name}</bdi> <small>{pair.lost.includes(name) ? "lost" : "gained"}</small>
            </span>
          ))}
        </span>
        <span class="facts">
          {SIDES.map((side, at) => (
            <a key={side} class="quiet" href={headAddress(heads[side].layer, heads[side].head, undefined, side)}>
              <bdi>{index.names[at]}</bdi> {headName(index, side, pair[side])} alone
            </a>
          ))}
        </span>
      </header>
      {failure && (
        <p class="caution" role="alert">
          {failure}
        </p>
      )}
      <div class="atlas-page twin-page">
        {a.said && b.said && <PairWhere view={view} pair={pair} a={a.said} b={b.said} />}
        <Changes view={view} pair={number} />
        <Similarity view={view} number={number} />
        {a.said && b.said && (
          <div class="twin-words">
            <SideTitle name={index.names[0]}>
              <FrequentPairs pairs={a.said.pairs} texts={index.a.texts} side="a" />
            </SideTitle>
            <SideTitle name={index.names[1]}>
              <FrequentPairs pairs={b.said.pairs} texts={index.b.texts} side="b" />
            </SideTitle>
          </div>
        )}
        {a.said && b.said && a.texts && b.texts && (
          <PairExamples
            view={view}
            a={{ name: index.names[0], view: view.a, said: a.said, texts: a.texts }}
            b={{ name: index.names[1], view: view.b, said: b.said, texts: b.texts }}
          />
        )}
      </div>
    </>
  );
}

function SideTitle({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="twin-of">
      <p class="twin-name">
        <bdi>{name}</bdi>
      </p>
      {children}
    </div>
  );
}

/** Each part of the similarity, and what it is for other heads. */
function Similarity({ view: { index }, number }: { view: ComparisonView; number: number }) {
  const { parts, similarity, chance, nextBest } = index.pairs[number];
  return (
    <section class="card atlas-card twin-parts" aria-label="Similarity">
      <h2>
        Similarity <b class="number">{shortShare(similarity)}</b>
      </h2>
      <table>
        <tbody>
          {index.parts.map((name, at) => (
            <tr key={name}>
              <th scope="row">{PART_WORDS[name] ?? name}</th>
              <td>{shortShare(parts[at])}</td>
            </tr>
          ))}
          <tr class="twin-total">
            <th scope="row">mean of these</th>
            <td>
              <b>{shortShare(similarity)}</b>
            </td>
          </tr>
          <tr>
            <th scope="row">next best head of {index.names[1]}</th>
            <td>{shortShare(nextBest)}</td>
          </tr>
          <tr>
            <th scope="row">all its heads, on average</th>
            <td>{shortShare(chance)}</td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}

const PART_WORDS: Readonly<Record<string, string>> = {
  distance: "attention by distance",
  classes: "by what query and key are",
  map: "mean map",
  scores: "scores of patterns",
  links: "strongest links between words",
};

/** Leads to both maps and to the pairs beside; Escape leads out, [ and ] to the pairs beside. */
function PairNav({ view: { index }, number }: { view: ComparisonView; number: number }) {
  const before = number > 0 ? pairAddress(index, number - 1) : undefined;
  const after = number + 1 < index.pairs.length ? pairAddress(index, number + 1) : undefined;
  useEffect(() => {
    const leads: Readonly<Record<string, string | undefined>> = { "[": before, "]": after, Escape: "#/" };
    const onKey = ({ key }: KeyboardEvent) => {
      const address = leads[key];
      if (address) location.hash = address;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [before, after]);
  return (
    <nav aria-label="Pairs">
      <a class="quiet" href="#/">
        ← Both atlases
      </a>
      {before && (
        <a class="quiet" href={before} aria-label="Pair before">
          ‹
        </a>
      )}
      {after && (
        <a class="quiet" href={after} aria-label="Pair after">
          ›
        </a>
      )}
    </nav>
  );
}

const SHOWN = 4;

interface OneSide {
  /** What its atlas is called. */
  name: string;
  view: AtlasView;
  said: AtlasHead;
  texts: readonly AtlasText[];
}

/** Texts on which the heads score high: the same in both, where both samples hold the same. */
function PairExamples({ view: { index }, a, b }: { view: ComparisonView; a: OneSide; b: OneSide }) {
  const together = index.sameTexts ? [...new Set([...highest(a), ...highest(b)])] : [];
  return (
    <section class="card atlas-card atlas-examples" aria-label="Examples">
      <h2>{index.sameTexts ? "The same texts in both heads" : "Texts on which each head scores high"}</h2>
      <div class="twin-examples">
        {[a, b].map(({ name, view }) => (
          <p key={view.side} class="twin-name">
            <bdi>{name}</bdi>
          </p>
        ))}
        {index.sameTexts
          ? together.map((number) => [
              <Example key={`a${number}`} of={a} number={number} />,
              <Example key={`b${number}`} of={b} number={number} />,
            ])
          : Array.from({ length: SHOWN }, (_, at) => [
              <Example key={`a${at}`} of={a} number={highest(a)[at]} />,
              <Example key={`b${at}`} of={b} number={highest(b)[at]} />,
            ])}
      </div>
      <p class="fine">
        {index.sameTexts
          ? `Up to ${SHOWN} texts of the highest fifth of either head`
          : `${SHOWN} texts of its highest fifth`}
        , by {a.said.score} and {b.said.score}. Words: the darker, the more of the strongest links end there; the
        strongest link between words is marked. A click opens the text.
      </p>
    </section>
  );
}

function highest({ said }: OneSide): readonly number[] {
  return said.strata.at(-1)?.examples.slice(0, SHOWN) ?? [];
}

function Example({ of: { name, view, said, texts }, number }: { of: OneSide; number: number | undefined }) {
  if (number === undefined || !texts[number]) return <span />;
  return (
    <a class="atlas-example" href={headAddress(said.layer, said.head, number, view.side)}>
      <small class="twin-narrow">
        <bdi>{name}</bdi>
      </small>
      <span class="atlas-example-score number">{shortShare(said.scores[number])}</span>
      <MiniLines view={view} said={said} number={number} text={texts[number]} />
      <ExampleWords view={view} said={said} number={number} text={texts[number]} />
    </a>
  );
}

interface PairWhereProps {
  view: ComparisonView;
  pair: ComparedPair;
  a: AtlasHead;
  b: AtlasHead;
}

/** Where the attention of both heads goes: mean maps and their difference, by distance, by what a key is. */
function PairWhere({ view, pair, a, b }: PairWhereProps) {
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
