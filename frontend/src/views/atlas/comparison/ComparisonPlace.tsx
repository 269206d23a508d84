import { useMemo } from "preact/hooks";
import type { AtlasSource } from "../../../source/atlas";
import type { ComparisonIndex } from "../../../source/atlasComparison";
import type { AtlasPlace } from "../../../state/atlas";
import { headName, otherSide, pairAddress, pairsOf, readPair } from "../../../state/atlasComparison";
import { HeadPage } from "../HeadPage";
import { MapPage } from "../MapPage";
import { type AtlasView, placeOf, viewOf } from "../parts";
import { BothMaps } from "./BothMaps";
import { PairPage } from "./PairPage";

interface ComparisonPlaceProps {
  index: ComparisonIndex;
  source: AtlasSource;
  dark: boolean;
  place: AtlasPlace;
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
  const pair = readPair(fragment, index);
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
function Partner({ index, place: { side, head } }: { index: ComparisonIndex; place: AtlasPlace }) {
  if (side === "" || !head) return null;
  const name = index.names[side === "a" ? 0 : 1];
  const number = pairsOf(index, side)[placeOf(index[side], ...head)] ?? -1;
  const pair = index.pairs[number];
  const other = otherSide(side);
  return (
    <p class="twin-name muted">
      <bdi>{name}</bdi>:{" "}
      {pair ? (
        <a class="quiet muted" href={pairAddress(index, number)}>
          matched with {headName(index, other, pair[other])} of {index.names[other === "a" ? 0 : 1]}
        </a>
      ) : (
        "no partner"
      )}
    </p>
  );
}

/** What all parts of the page of two atlases are given. */
export interface ComparisonView {
  readonly index: ComparisonIndex;
  readonly a: AtlasView;
  readonly b: AtlasView;
}
