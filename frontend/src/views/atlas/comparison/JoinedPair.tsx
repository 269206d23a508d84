import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { shortShare } from "../../../state/atlas";
import { pairName } from "../../../state/atlasComparison";
import type { ComparisonView } from "./view";

interface JoinedPairProps {
  view: ComparisonView;
  /** What holds the tiles of both maps. */
  maps: { readonly current: HTMLElement | null };
  /** Changes where tiles move. */
  order: string;
}

/**
 * Joins the head that is pointed at, or has the focus, with its partner by a line, and says what they are.
 *
 * It marks the tiles itself: drawing two thousand of them again for each step of the pointer would be seen.
 */
export function JoinedPair({ view, maps, order }: JoinedPairProps) {
  const [pair, setPair] = useState(-1);
  const [line, setLine] = useState("");
  useEffect(() => {
    const root = maps.current;
    if (!root) return;
    const follow = (event: Event) => {
      const tile = (event.target as HTMLElement).closest<HTMLElement>("[data-pair]");
      if (tile) setPair(Number(tile.dataset.pair));
    };
    const leave = () => setPair(-1);
    root.addEventListener("pointerover", follow);
    root.addEventListener("focusin", follow);
    root.addEventListener("pointerleave", leave);
    root.addEventListener("focusout", leave);
    return () => {
      root.removeEventListener("pointerover", follow);
      root.removeEventListener("focusin", follow);
      root.removeEventListener("pointerleave", leave);
      root.removeEventListener("focusout", leave);
    };
  }, [maps]);
  useLayoutEffect(() => {
    const tiles = [...(maps.current?.querySelectorAll<HTMLElement>(`[data-pair="${pair}"]`) ?? [])];
    for (const tile of tiles) tile.dataset.joined = "";
    setLine(maps.current && tiles.length === 2 ? between(maps.current, tiles[0], tiles[1]) : "");
    return () => {
      for (const tile of tiles) delete tile.dataset.joined;
    };
  }, [maps, pair, order]);
  const both = view.index.pairs[pair];
  return (
    <>
      <svg class="twin-line" aria-hidden="true">
        <path d={line} />
      </svg>
      <p class="twin-said" role="status">
        {both ? (
          <>
            <b>{pairName(view.index, both)}</b>: similarity {shortShare(both.similarity)}
            {both.nextBest !== null && `, next best ${shortShare(both.nextBest)}`}, chance {shortShare(both.chance)}
            {both.gained.length > 0 && `; gained ${both.gained.join(", ")}`}
            {both.lost.length > 0 && `; lost ${both.lost.join(", ")}`}
          </>
        ) : (
          "Point at a head, or go to it by Tab and the arrows: its partner is marked. A click opens both."
        )}
      </p>
    </>
  );
}

/** A curve from the edge of one tile to the edge of the other that faces it. */
function between(root: HTMLElement, one: HTMLElement, other: HTMLElement): string {
  const frame = root.getBoundingClientRect();
  const [from, to] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
  const beside = to.left >= from.right;
  const start = beside ? [from.right, (from.top + from.bottom) / 2] : [(from.left + from.right) / 2, from.bottom];
  const end = beside ? [to.left, (to.top + to.bottom) / 2] : [(to.left + to.right) / 2, to.top];
  const [x, y] = [start[0] - frame.left, start[1] - frame.top];
  const [toX, toY] = [end[0] - frame.left, end[1] - frame.top];
  const half = beside ? (toX - x) / 2 : (toY - y) / 2;
  return beside
    ? `M${x} ${y}C${x + half} ${y} ${toX - half} ${toY} ${toX} ${toY}`
    : `M${x} ${y}C${x} ${y + half} ${toX} ${toY - half} ${toX} ${toY}`;
}
