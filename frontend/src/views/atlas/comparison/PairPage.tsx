import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { rampColor, signedByte, signedRamp } from "../../../draw/ramps";
import { Mark } from "../../../parts/Mark";
import type { AtlasHead, AtlasText } from "../../../source/atlas";
import type { ComparedPair } from "../../../source/atlasComparison";
import { headAddress, percents, shortShare, shownText } from "../../../state/atlas";
import { type ComparedSide, headName, mapDifference, pairAddress } from "../../../state/atlasComparison";
import { FrequentPairs } from "../FrequentPairs";
import { Curve, useHead } from "../HeadPage";
import { type AtlasView, BesideNav, MeanMap } from "../parts";
import { Example } from "../Texts";
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
        <BesideNav
          noun="Pair"
          home={["#/", "Both atlases"]}
          out="#/"
          before={number > 0 ? pairAddress(index, number - 1) : undefined}
          after={number + 1 < index.pairs.length ? pairAddress(index, number + 1) : undefined}
        />
        <h1 tabIndex={-1}>
          Head {headName(index, "a", pair.a)} → {headName(index, "b", pair.b)}
        </h1>
        <span class="label-chips flex wrap">
          {[...pair.lost, ...pair.gained].map((name) => (
            <span class="label-chip row" key={name}>
              <Mark shape={view.a.marks.get(name) ?? view.b.marks.get(name)} />
              <bdi class="cut">{name}</bdi> <small>{pair.lost.includes(name) ? "lost" : "gained"}</small>
            </span>
          ))}
        </span>
        <span class="facts muted">
          {SIDES.map((side, at) => (
            <a key={side} class="quiet muted" href={headAddress(heads[side].layer, heads[side].head, undefined, side)}>
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
      <div class="atlas-page twin-page stack top">
        {a.said && b.said && <PairWhere view={view} pair={pair} a={a.said} b={b.said} />}
        <Changes view={view} pair={number} />
        <Similarity view={view} number={number} />
        {a.said && b.said && (
          <div class="twin-words stack">
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
    <div class="twin-of slim">
      <p class="twin-name muted">
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
      <div class="twin-examples stack">
        {[a, b].map(({ name, view }) => (
          <p key={view.side} class="twin-name muted">
            <bdi>{name}</bdi>
          </p>
        ))}
        {index.sameTexts
          ? together.map((number) => [
              <SideExample key={`a${number}`} of={a} number={number} />,
              <SideExample key={`b${number}`} of={b} number={number} />,
            ])
          : Array.from({ length: SHOWN }, (_, at) => [
              <SideExample key={`a${at}`} of={a} number={highest(a)[at]} />,
              <SideExample key={`b${at}`} of={b} number={highest(b)[at]} />,
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

function SideExample({ of: { name, view, said, texts }, number }: { of: OneSide; number: number | undefined }) {
  if (number === undefined || !texts[number]) return <span />;
  return (
    <Example
      dark={view.dark}
      text={shownText(said, number, texts[number])}
      href={headAddress(said.layer, said.head, number, view.side)}
      score={shortShare(said.scores[number])}
    >
      <small class="twin-narrow">
        <bdi>{name}</bdi>
      </small>
    </Example>
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
    <section class="card atlas-card atlas-where twin-where stack top" aria-label="Where their attention goes">
      <h2>Where their attention goes</h2>
      <div class="twin-means stack">
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
      <Curve
        distances={index.a.distances}
        shares={a.distance.map(([share], at) => [share, b.distance[at][0]] as const)}
        said={(at) => `${at.name}: ${percents(at.bar)} and ${percents(at.line)}`}
        size={({ bar, line }) => Math.abs(bar - line)}
        twin
      >
        {() => (
          <>
            by distance in tokens: bars <bdi>{before}</bdi>, line <bdi>{after}</bdi>
          </>
        )}
      </Curve>
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
