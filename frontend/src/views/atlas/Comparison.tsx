import { useMemo, useState } from "preact/hooks";
import { signedByte, signedRamp } from "../../draw/color";
import { Quiet } from "../../parts/controls";
import { LabelIcon } from "../../parts/legend";
import type {
  AtlasHead,
  AtlasSource,
  AtlasText,
  ComparedPair,
  ComparedScore,
  ComparisonIndex,
} from "../../source/atlas";
import * as atlas from "../../state/atlas";
import { signedWeight } from "../../state/words";
import { FrequentPairs, HeadPage, sharesOf, useHead, Where } from "./HeadPage";
import { MapPage } from "./MapPage";
import { type AtlasView, Card, Heading, Histogram, LabelChip, MeanMap, SquareMap, Table, viewOf } from "./parts";
import { Strata } from "./Texts";

// Two atlases are one whose heads have a partner: what differs are metrics of its map, and its heads have pages of two.

type ComparisonPlaceProps = { index: ComparisonIndex; source: AtlasSource; dark: boolean; place: atlas.AtlasPlace };

type ComparisonView = { readonly index: ComparisonIndex; readonly a: AtlasView; readonly b: AtlasView };

/** How much the heads of two atlases differ, a pair of them, or what one atlas says alone. */
export function ComparisonPlace({ index, source, dark, place }: ComparisonPlaceProps) {
  const { names, metrics, summary, caution } = index;
  const view = useMemo(
    () => ({
      index,
      a: viewOf({ ...index.a, model: names[0] }, source.side("a"), dark, "a"),
      b: viewOf({ ...index.b, model: names[1] }, source.side("b"), dark, "b"),
    }),
    [index, names, source, dark],
  );
  const { side, head, find } = place;
  const pair = head ? index.pairs.findIndex(({ a }) => nameIn(index, "a", a) === head.join("-")) : -1;
  if (head && side === "" && pair >= 0) return <PairPage key={pair} view={view} number={pair} />;
  const alone = view[side || "a"];
  if (head) return <HeadPage key={head.join("-")} view={alone} place={{ ...place, side: alone.side }} />;
  if (side) return <MapPage view={alone} find={find} />;
  const of = metrics.map((metric) => ({ ...metric, says: `${names[0]}: ${metric.says}` }));
  const both = { ...index.a, model: names.join(" and "), metrics: of, summary, caution };
  return (
    <MapPage view={viewOf(both, source, dark, "")} find={find} second={view.b}>
      <Similarities view={view} />
      <Changes view={view} pattern={find} />
    </MapPage>
  );
}

/** What a head is called: layer and number. */
function nameIn(index: ComparisonIndex, side: atlas.ComparedSide, at: number): string {
  const { layer, head } = index[side].heads[at];
  return `${layer}-${head}`;
}

/** Both heads of a pair: "2-7 → 3-1". */
function pairName(index: ComparisonIndex, { a, b }: ComparedPair): string {
  return `${nameIn(index, "a", a)} → ${nameIn(index, "b", b)}`;
}

/** The page of a pair is that of its head of A. */
function pairAddress({ a, pairs }: ComparisonIndex, number: number): string | undefined {
  const { layer, head } = a.heads[pairs[number]?.a] ?? {};
  return layer === undefined || head === undefined ? undefined : atlas.headAddress(layer, head);
}

const SIDES: readonly atlas.ComparedSide[] = ["a", "b"];

/** Both heads of a pair: where their attention goes, their scores, words and examples. */
function PairPage({ view, number }: { view: ComparisonView; number: number }) {
  const { index } = view;
  const pair = index.pairs[number];
  const heads = { a: index.a.heads[pair.a], b: index.b.heads[pair.b] };
  const a = useHead(view.a, heads.a.layer, heads.a.head);
  const b = useHead(view.b, heads.b.layer, heads.b.head);
  return (
    <>
      <Heading
        noun="Pair"
        home={["#/", "Both atlases"]}
        out="#/"
        before={pairAddress(index, number - 1)}
        after={pairAddress(index, number + 1)}
        title={`Head ${pairName(index, pair)}`}
        failure={a.failure || b.failure}
      >
        <span class="label-chips flex wrap">
          {[...pair.lost, ...pair.gained].map((name) => (
            <LabelChip key={name} name={name} dark={view.a.dark} note={pair.lost.includes(name) ? "lost" : "gained"} />
          ))}
        </span>
        <span class="facts muted">
          {SIDES.map((side, at) => (
            <a
              key={side}
              class="quiet muted"
              href={atlas.headAddress(heads[side].layer, heads[side].head, undefined, side)}
            >
              <bdi>{index.names[at]}</bdi> {nameIn(index, side, pair[side])} alone
            </a>
          ))}
        </span>
      </Heading>
      <div class="atlas-page twin-page stack top">
        {a.said && b.said && <PairWhere view={view} pair={pair} a={a.said} b={b.said} />}
        <Changes view={view} pair={number} />
        <Similarity view={view} number={number} />
        {a.said && b.said && (
          <div class="twin-words halves stack">
            {[a.said, b.said].map(({ pairs }, at) => (
              <div key={SIDES[at]} class="twin-of slim">
                <p class="twin-name muted">
                  <bdi>{index.names[at]}</bdi>
                </p>
                <FrequentPairs pairs={pairs} texts={index[SIDES[at]].texts} side={SIDES[at]} />
              </div>
            ))}
          </div>
        )}
        {a.said && b.said && a.texts && b.texts && (
          <PairExamples
            view={view}
            heads={[
              { said: a.said, texts: a.texts },
              { said: b.said, texts: b.texts },
            ]}
          />
        )}
      </div>
    </>
  );
}

/** Each part of the similarity, and what it is for other heads. */
function Similarity({ view: { index }, number }: { view: ComparisonView; number: number }) {
  const { parts, similarity, chance, nextBest } = index.pairs[number];
  return (
    <Card
      class="twin-parts"
      label="Similarity"
      title={
        <>
          Similarity <b class="number">{atlas.shortShare(similarity)}</b>
        </>
      }
    >
      <Table
        rows={[
          ...index.parts.map((name, at) => [PART_WORDS[name] ?? name, atlas.shortShare(parts[at])] as const),
          ["mean of these", <b>{atlas.shortShare(similarity)}</b>],
          [`next best head of ${index.names[1]}`, atlas.shortShare(nextBest)],
          ["all its heads, on average", atlas.shortShare(chance)],
        ]}
      />
    </Card>
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

type OneSide = { readonly said: AtlasHead; readonly texts: readonly AtlasText[] };

/** Texts on which the heads score high: the same of both, where both samples hold the same. */
function PairExamples({ view, heads }: { view: ComparisonView; heads: readonly OneSide[] }) {
  const { names, sameTexts } = view.index;
  const highest = heads.map(({ said }) => said.strata.at(-1)?.examples.slice(0, SHOWN) ?? []);
  return (
    <Strata
      dark={view.a.dark}
      title={sameTexts ? "The same texts in both heads" : "Texts on which each head scores high"}
      strata={heads.map(({ said, texts }, at) => {
        const numbers = sameTexts ? [...new Set(highest.flat())] : highest[at];
        return {
          name: names[at],
          count: `by ${said.score}`,
          texts: numbers.map((number) => ({
            href: atlas.headAddress(said.layer, said.head, number, SIDES[at]),
            text: atlas.shownText(said, number, texts[number]),
            score: atlas.shortShare(said.scores[number]),
          })),
        };
      })}
      note={`Up to ${SHOWN} texts of the highest fifth of ${sameTexts ? "either" : "each"} head.`}
    />
  );
}

type PairWhereProps = { view: ComparisonView; pair: ComparedPair; a: AtlasHead; b: AtlasHead };

/** Where the attention of both heads goes: mean maps and their difference, by distance, by what a key is. */
function PairWhere({ view, pair, a, b }: PairWhereProps) {
  const { index } = view;
  const colors = ["var(--muted)", "var(--accent)"];
  return (
    <Where
      title="Where their attention goes"
      color={colors[0]}
      index={index.a}
      maps={
        <>
          {SIDES.map((side, at) => (
            <figure key={side}>
              <MeanMap view={view[side]} at={pair[side]} label={`Mean map in ${index.names[at]}`} />
              <figcaption>
                <bdi>{index.names[at]}</bdi>
              </figcaption>
            </figure>
          ))}
          <DifferenceMap view={view} pair={pair} />
        </>
      }
      shares={a.distance.map(([share], at) => [share, b.distance[at][0]] as const)}
      said={(name, one, other) => `${name}: ${atlas.percents(one)} and ${atlas.percents(other)}`}
      line={<bdi>{index.names[1]}</bdi>}
      kinds="what they look at"
      names={[...Object.keys(a.relations), ...index.a.classes]}
      columns={[a, b].map((said, at) => {
        const of = sharesOf(index[SIDES[at]], said);
        return { title: <bdi>{index.names[at]}</bdi>, share: (name) => of(name)[0], isBar: true, color: colors[at] };
      })}
    />
  );
}

/** The mean map of B less that of A. */
function DifferenceMap({ view, pair }: { view: ComparisonView; pair: ComparedPair }) {
  const width = 2 * view.index.a.side;
  const values = atlas.mapDifference({ maps: view.a.maps, at: pair.a }, { maps: view.b.maps, at: pair.b }, width);
  // Below a twentieth the picture would be noise in full colours.
  const most = Math.max(0.05, ...values.map(Math.abs));
  const pixels = () => {
    const ramp = signedRamp(view.a.dark);
    return Uint32Array.from(values, (value) => ramp[signedByte(value, most)]);
  };
  return (
    <figure>
      <SquareMap
        width={width}
        pixels={pixels}
        of={[view, pair]}
        label={`Difference of both, up to ${atlas.percents(most)}`}
      />
      <figcaption>difference: blue more, orange less; full colour {atlas.percents(most)}</figcaption>
    </figure>
  );
}

const CHANGES_SHOWN = 12;

type ChangesProps = { view: ComparisonView; pair?: number; pattern?: string };

/** The scores that differ most, with intervals: of all, of a pattern where it is one, or of a pair. */
function Changes({ view, pair, pattern }: ChangesProps) {
  const { index } = view;
  const [shown, setShown] = useState(CHANGES_SHOWN);
  const named = index.differences.filter(([number, name]) => number === pair || name === pattern);
  const alone = pair !== undefined;
  const mine = alone || named.length > 0 ? named : index.differences;
  const clear = mine.filter(atlas.isClear).length;
  const byChance = (1 - index.confidence) * mine.length;
  const shownScores = mine.slice(0, shown);
  return (
    <Card label="What changed most" title={alone ? "Scores of both heads" : "What changed most"}>
      <Table
        class="twin-changes"
        head={[
          ...(alone ? [] : ["heads"]),
          "pattern",
          <span class="twin-wide">from 0 to 1</span>,
          <bdi>{index.names[0]}</bdi>,
          <bdi>{index.names[1]}</bdi>,
          "change",
          <span class="twin-wide">interval</span>,
        ]}
        rows={shownScores.map((score) => rowOf(view, score, alone))}
        marks={(row) => ({ "data-clear": atlas.isClear(shownScores[row]) || undefined })}
      />
      {mine.length > shown && (
        <Quiet type="button" onClick={() => setShown(shown + 40)}>
          {Math.min(40, mine.length - shown)} more of {mine.length}
        </Quiet>
      )}
      <p class="fine">
        {clear} of {mine.length} scores have an interval ({100 * index.confidence} %) without 0; about{" "}
        {byChance.toFixed(0)} would by chance, were nothing changed. Both scores are taken as independent
        {index.sameTexts
          ? ", so that intervals are rather too wide: the texts are the same."
          : "; the texts are not the same, so that differences are of models and of texts."}
      </p>
    </Card>
  );
}

function rowOf({ index, a }: ComparisonView, score: ComparedScore, alone: boolean) {
  const [number, pattern, before, after, low, high] = score;
  const name = (
    <span class="twin-pattern">
      <LabelIcon name={pattern} dark={a.dark} /> <bdi>{pattern}</bdi>
    </span>
  );
  const numbers = [
    <Dumbbell before={before} after={after} />,
    atlas.shortShare(before),
    atlas.shortShare(after),
    <b>{signedWeight(after - before)}</b>,
    <span class="twin-wide">{low !== null && high !== null && `[${signedWeight(low)}, ${signedWeight(high)}]`}</span>,
  ];
  if (alone) return [name, ...numbers] as const;
  return [
    <a href={pairAddress(index, number) ?? ""}>{pairName(index, index.pairs[number])}</a>,
    name,
    ...numbers,
  ] as const;
}

/** Two scores on a line from 0 to 1: a ring for A, a dot for B. */
function Dumbbell({ before, after }: { before: number; after: number }) {
  const x = (value: number) => 6 + 108 * Math.min(1, Math.max(0, value));
  return (
    <svg class="twin-dumbbell block twin-wide" viewBox="0 0 120 14" aria-hidden="true">
      <path class="twin-axis" d="M6 7H114" />
      <path class="twin-way" d={`M${x(before)} 7H${x(after)}`} />
      <circle class="twin-before" cx={x(before)} cy={7} r={3.4} />
      <circle class="twin-after" cx={x(after)} cy={7} r={3.9} />
    </svg>
  );
}

const BINS = 20;

/** The similarity of all pairs, next to what matchings by chance give. */
function Similarities({ view: { index } }: { view: ComparisonView }) {
  const { pairs, chance, different, similarity } = index;
  const least = Math.min(chance, different ?? 1, ...pairs.map((pair) => pair.similarity));
  const edges = Array.from({ length: BINS + 1 }, (_, edge) => least + ((1 - least) * edge) / BINS);
  const values = Array<number>(BINS).fill(0);
  for (const pair of pairs) {
    values[Math.min(BINS - 1, Math.floor((BINS * (pair.similarity - least)) / (1 - least || 1)))]++;
  }
  return (
    <section class="card atlas-card twin-similarities stack middle" aria-label="How similar matched heads are">
      <div class="twin-numbers">
        <p class="facts">
          {SIDES.map((side, at) => (
            <a key={side} class="quiet muted" href={atlas.mapAddress(side)}>
              <bdi>{index.names[at]}</bdi> alone
            </a>
          ))}
        </p>
        {[
          [similarity, "matched heads"],
          [different, "different heads of one atlas, matched in the same way"],
          [chance, "random pairs"],
        ].map(([value, words]) => (
          <p key={words} class="stack muted">
            <b>{atlas.shortShare(value as number | null)}</b> {words}
          </p>
        ))}
      </div>
      <Histogram
        plot={{
          label: "matched pairs by similarity",
          description: "pale: no more alike than different heads",
          edges,
          values,
        }}
        odd={(bin) => edges[bin + 1] <= (different ?? chance)}
      />
      <p class="fine">
        Similarity is the mean of {index.parts.length} parts ({index.parts.join(", ")}). Where it is that of different
        heads, a match says nothing about which heads are the same.
      </p>
    </section>
  );
}
