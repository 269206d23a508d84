import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { AtlasSource, ComparisonIndex } from "../../../source/atlas";
import * as atlas from "../../../state/atlas";
import { counted } from "../../../state/words";
import { HeadPage } from "../HeadPage";
import { MapPage } from "../MapPage";
import { type AtlasView, Card, HeadGrid, Histogram, LabelChip, placeOf, Tile, viewOf } from "../parts";
import { Changes, PairPage } from "./PairPage";

interface ComparisonPlaceProps {
  index: ComparisonIndex;
  source: AtlasSource;
  dark: boolean;
  place: atlas.AtlasPlace;
  fragment: string;
}

/** Two atlases: both maps, a pair of heads, or what one of them says alone. */
export function ComparisonPlace({ index, source, dark, place, fragment }: ComparisonPlaceProps) {
  const view = useMemo(
    () => ({
      index,
      a: viewOf(index.a, source.side("a"), dark, "a"),
      b: viewOf(index.b, source.side("b"), dark, "b"),
    }),
    [index, source, dark],
  );
  const pair = atlas.readPair(fragment, index);
  if (pair !== null && pair >= 0) return <PairPage key={pair} view={view} number={pair} />;
  if (place.side === "") return <BothMaps view={view} />;
  const alone = view[place.side];
  if (!place.head) return <MapPage view={alone} find={place.find} />;
  return (
    <>
      <Partner index={index} place={place} />
      <HeadPage key={place.head.join("-")} view={alone} place={place} />
    </>
  );
}

/** Leads from the page of a head to the pair that it is in. */
function Partner({ index, place: { side, head } }: { index: ComparisonIndex; place: atlas.AtlasPlace }) {
  if (side === "" || !head) return null;
  const number = atlas.pairsOf(index, side)[placeOf(index[side], ...head)] ?? -1;
  const pair = index.pairs[number];
  const other = atlas.otherSide(side);
  return (
    <p class="twin-name muted">
      <bdi>{nameOf(index, side)}</bdi>:{" "}
      {pair ? (
        <a class="quiet muted" href={atlas.pairAddress(index, number)}>
          matched with {atlas.headName(index, other, pair[other])} of {nameOf(index, other)}
        </a>
      ) : (
        "no partner"
      )}
    </p>
  );
}

function nameOf({ names }: ComparisonIndex, side: atlas.ComparedSide): string {
  return names[side === "a" ? 0 : 1];
}

/** What all parts of the page of two atlases are given. */
export type ComparisonView = { readonly index: ComparisonIndex; readonly a: AtlasView; readonly b: AtlasView };

/** Both maps of all heads, and what changed between them. */
export function BothMaps({ view }: { view: ComparisonView }) {
  const { index } = view;
  return (
    <>
      <header>
        <h1 tabIndex={-1}>
          <bdi>{index.names[0]}</bdi> and <bdi>{index.names[1]}</bdi>
        </h1>
        <span class="facts muted">{counted(index.pairs.length, "pair")} of heads</span>
      </header>
      {index.caution && <p class="caution">{index.caution}</p>}
      <Similarities view={view} />
      <section class="card atlas-card twin-card" aria-label="Both maps">
        <p class="atlas-says muted">
          Heads are matched {index.matching === "best" ? "one to one, by what they do" : "by layer and number"}. The bar
          below a tile is how much the pair changed: none where both are the same, full where they are as unlike as
          random pairs.
        </p>
        <Joined index={index}>
          <SideMap view={view} side="a" />
          <SideMap view={view} side="b" />
        </Joined>
      </section>
      <Changes view={view} />
      <LabelChanges view={view} />
      <p class="note muted">{index.summary}</p>
    </>
  );
}

function SideMap({ view, side }: { view: ComparisonView; side: atlas.ComparedSide }) {
  const { index } = view;
  const { model, heads, texts } = index[side];
  const pairs = useMemo(() => atlas.pairsOf(index, side), [index, side]);
  return (
    <section class="twin-side" data-side={side} aria-label={nameOf(index, side)}>
      <h2>
        <a href={atlas.mapAddress(side)}>
          <bdi>{nameOf(index, side)}</bdi>
        </a>{" "}
        <small>{[model, counted(heads.length, "head"), counted(texts, "text")].filter(Boolean).join(", ")}</small>
      </h2>
      <HeadGrid
        grid={atlas.rowsOf(heads)}
        tile={(at, tabbed) => <MatchedTile key={at} view={view} side={side} at={at} pair={pairs[at]} tabbed={tabbed} />}
      />
    </section>
  );
}

interface MatchedTileProps {
  view: ComparisonView;
  side: atlas.ComparedSide;
  at: number;
  /** Number of its pair; -1 where it has no partner. */
  pair: number;
  tabbed: boolean;
}

function MatchedTile({ view, side, at, pair, tabbed }: MatchedTileProps) {
  const { index } = view;
  const both = index.pairs[pair];
  const other = atlas.otherSide(side);
  const note = both
    ? `matched with ${atlas.headName(index, other, both[other])}, similarity ${atlas.shortShare(both.similarity)}`
    : "no partner";
  return (
    <span
      class="twin-tile block relative slim"
      data-alone={!both || undefined}
      data-pair={both && pair}
      style={{ "--change": both && atlas.changeOf(index, both) }}
    >
      <Tile view={view[side]} at={at} note={note} tabbed={tabbed} href={both && atlas.pairAddress(index, pair)} />
    </span>
  );
}

/** Marks the head that is pointed at, or has the focus, and its partner, and says what they are. */
function Joined({ index, children }: { index: ComparisonIndex; children: ComponentChildren }) {
  const [number, setNumber] = useState(-1);
  const both = index.pairs[number];
  const follow = ({ target }: Event) => {
    const tile = (target as HTMLElement).closest<HTMLElement>("[data-pair]");
    if (tile) setNumber(Number(tile.dataset.pair));
  };
  const leave = () => setNumber(-1);
  return (
    <div
      class="twin-maps halves stack relative top"
      onPointerOver={follow}
      onFocusIn={follow}
      onPointerLeave={leave}
      onFocusOut={leave}
    >
      {children}
      {/* As a style: to draw two thousand tiles again for each step of the pointer would be seen. */}
      {both && <style>{`.twin-tile[data-pair="${number}"] .atlas-map{box-shadow:0 0 0 3px var(--accent)}`}</style>}
      <p class="twin-said muted" role="status">
        {both ? (
          <>
            <b>{atlas.pairName(index, both)}</b>: similarity {atlas.shortShare(both.similarity)}
            {both.nextBest !== null && `, next best ${atlas.shortShare(both.nextBest)}`}, chance{" "}
            {atlas.shortShare(both.chance)}
            {both.gained.length > 0 && `; gained ${both.gained.join(", ")}`}
            {both.lost.length > 0 && `; lost ${both.lost.join(", ")}`}
          </>
        ) : (
          "Point at a head, or go to it by Tab and the arrows: its partner is marked. A click opens both."
        )}
      </p>
    </div>
  );
}

/** The labels that only one head of a pair holds. */
function LabelChanges({ view: { index, a } }: { view: ComparisonView }) {
  const [first, second] = index.names;
  const lists = [
    ["Labels gained", `held in ${second} only`, "gained"],
    ["Labels lost", `held in ${first} only`, "lost"],
  ] as const;
  const chips = (number: number, names: readonly string[]) =>
    names.map((name) => (
      <li key={`${number} ${name}`}>
        <LabelChip
          name={name}
          dark={a.dark}
          note={atlas.pairName(index, index.pairs[number])}
          href={atlas.pairAddress(index, number)}
        />
      </li>
    ));
  return (
    <div class="twin-labels halves stack top">
      {lists.map(([title, says, of]) => (
        <Card key={of} label={title} title={[title, " ", <small key={of}>{says}</small>]}>
          {index.pairs.every((pair) => pair[of].length === 0) && <p class="fine">None.</p>}
          <ul class="label-chips flex wrap">{index.pairs.map((pair, number) => chips(number, pair[of]))}</ul>
        </Card>
      ))}
    </div>
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
