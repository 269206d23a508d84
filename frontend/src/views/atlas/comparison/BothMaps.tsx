import { useMemo, useRef, useState } from "preact/hooks";
import { Segmented } from "../../../parts/Segmented";
import { headAddress, mapAddress, shortShare } from "../../../state/atlas";
import {
  type ComparedSide,
  changeOf,
  type GridRows,
  headName,
  otherSide,
  ownRows,
  pairAddress,
  pairsOf,
  partnerRows,
  unmatched,
} from "../../../state/atlasComparison";
import { counted } from "../../../state/words";
import { HeadGrid } from "../HeadGrid";
import { Tile } from "../parts";
import { Changes } from "./Changes";
import { JoinedPair } from "./JoinedPair";
import { LabelChanges } from "./LabelChanges";
import { Similarities } from "./Similarities";
import type { ComparisonView } from "./view";

const ORDERS = ["by layer", "beside partners"] as const;

/** Both maps of all heads, and what changed between them. */
export function BothMaps({ view }: { view: ComparisonView }) {
  const { index } = view;
  const maps = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useState<string>(ORDERS[0]);
  const rows = useMemo(() => (order === ORDERS[0] ? ownRows(index, "b") : partnerRows(index)), [index, order]);
  const left = order === ORDERS[0] ? [] : unmatched(index, "b");
  return (
    <>
      <header>
        <h1 tabIndex={-1}>
          <bdi>{index.names[0]}</bdi> and <bdi>{index.names[1]}</bdi>
        </h1>
        <span class="facts">{counted(index.pairs.length, "pair")} of heads</span>
      </header>
      {index.caution && <p class="caution">{index.caution}</p>}
      <Similarities view={view} />
      <section class="card atlas-card twin-card" aria-label="Both maps">
        <div class="twin-bar">
          <p class="atlas-says">
            Heads are matched {index.matching === "best" ? "one to one, by what they do" : "by layer and number"}. The
            bar below a tile is how much the pair changed: none where both are the same, full where they are as unlike
            as random pairs.
          </p>
          <Segmented label="Order of the heads on the right" options={ORDERS} chosen={order} onChoose={setOrder} />
        </div>
        <div class="twin-maps" ref={maps}>
          <SideMap view={view} side="a" rows={useMemo(() => ownRows(index, "a"), [index])} left={[]} />
          <SideMap view={view} side="b" rows={rows} left={left} />
          <JoinedPair view={view} maps={maps} order={order} />
        </div>
      </section>
      <Changes view={view} />
      <LabelChanges view={view} />
      <p class="note">{index.summary}</p>
    </>
  );
}

interface SideMapProps {
  view: ComparisonView;
  side: ComparedSide;
  rows: GridRows;
  /** Heads without a partner that have no place in the rows. */
  left: readonly number[];
}

function SideMap({ view, side, rows, left }: SideMapProps) {
  const { index } = view;
  const { model, heads, texts } = index[side];
  const pairs = useMemo(() => pairsOf(index, side), [index, side]);
  const first = rows.rows.flat().find((at) => at >= 0);
  const tile = (at: number, place: number) =>
    at < 0 ? (
      <span key={`empty ${place}`} class="twin-empty" />
    ) : (
      <MatchedTile key={at} view={view} side={side} at={at} pair={pairs[at]} tabbed={at === first} />
    );
  return (
    <section class="twin-side" data-side={side} aria-label={index.names[side === "a" ? 0 : 1]}>
      <h2>
        <a href={mapAddress(side)}>
          <bdi>{index.names[side === "a" ? 0 : 1]}</bdi>
        </a>{" "}
        <small>{[model, counted(heads.length, "head"), counted(texts, "text")].filter(Boolean).join(", ")}</small>
      </h2>
      <HeadGrid
        layers={rows.layers}
        rows={rows.rows}
        columns={Math.max(...rows.rows.map((row) => row.length))}
        tile={tile}
      />
      {left.length > 0 && (
        <>
          <h3>Without a partner</h3>
          <div class="twin-left">
            {left.map((at) => (
              <MatchedTile key={at} view={view} side={side} at={at} pair={-1} tabbed />
            ))}
          </div>
        </>
      )}
    </section>
  );
}

interface MatchedTileProps {
  view: ComparisonView;
  side: ComparedSide;
  at: number;
  /** Number of its pair; -1 where it has no partner. */
  pair: number;
  tabbed: boolean;
}

function MatchedTile({ view, side, at, pair, tabbed }: MatchedTileProps) {
  const { index } = view;
  const { layer, head } = index[side].heads[at];
  if (pair < 0) {
    const href = headAddress(layer, head, undefined, side);
    return (
      <span class="twin-tile" data-alone>
        <Tile view={view[side]} at={at} note="no partner" tabbed={tabbed} href={href} />
      </span>
    );
  }
  const both = index.pairs[pair];
  const other = otherSide(side);
  const note = `matched with ${headName(index, other, both[other])}, similarity ${shortShare(both.similarity)}`;
  return (
    <span class="twin-tile" data-pair={pair} style={{ "--change": changeOf(index, both) }}>
      <Tile view={view[side]} at={at} note={note} tabbed={tabbed} href={pairAddress(index, pair)} />
    </span>
  );
}
