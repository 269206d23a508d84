import { useState } from "preact/hooks";
import { signedByte, signedRamp } from "../../../draw/color";
import { Choice, Quiet } from "../../../parts/controls";
import { LabelIcon } from "../../../parts/legend";
import type { AtlasHead, AtlasText, ComparedPair, ComparedScore } from "../../../source/atlas";
import * as atlas from "../../../state/atlas";
import { signedWeight } from "../../../state/words";
import { FrequentPairs, sharesOf, useHead, Where } from "../HeadPage";
import { Card, Heading, LabelChip, MeanMap, SquareMap, Table } from "../parts";
import { Strata } from "../Texts";
import type { ComparisonView } from "./BothMaps";

const SIDES: readonly atlas.ComparedSide[] = ["a", "b"];

/** Both heads of a pair: where their attention goes, their scores, words and examples. */
export function PairPage({ view, number }: { view: ComparisonView; number: number }) {
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
        before={number > 0 ? atlas.pairAddress(index, number - 1) : undefined}
        after={number + 1 < index.pairs.length ? atlas.pairAddress(index, number + 1) : undefined}
        title={`Head ${atlas.pairName(index, pair)}`}
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
              <bdi>{index.names[at]}</bdi> {atlas.headName(index, side, pair[side])} alone
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

interface ChangesProps {
  view: ComparisonView;
  /** Of this pair alone. */
  pair?: number;
}

/** The scores that differ most, with intervals. */
export function Changes({ view, pair }: ChangesProps) {
  const { index } = view;
  const [shown, setShown] = useState(CHANGES_SHOWN);
  const [pattern, setPattern] = useState("");
  const mine = index.differences.filter(([number, name]) => {
    return (pair === undefined || number === pair) && (pattern === "" || name === pattern);
  });
  const clear = mine.filter(atlas.isClear).length;
  const byChance = (1 - index.confidence) * mine.length;
  const alone = pair !== undefined;
  const shownScores = mine.slice(0, shown);
  return (
    <Card label="What changed most" title={alone ? "Scores of both heads" : "What changed most"}>
      {!alone && (
        <Choice
          label="Pattern"
          name="data-pattern"
          options={["", ...new Set(index.differences.map(([, name]) => name))]}
          words={{ "": "all" }}
          chosen={pattern}
          onChoose={(chosen) => {
            setPattern(chosen);
            setShown(CHANGES_SHOWN);
          }}
        />
      )}
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
    <a href={atlas.pairAddress(index, number)}>{atlas.pairName(index, index.pairs[number])}</a>,
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
