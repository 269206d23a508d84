import { otherSide, type Place, type Side } from "../../draw/place";

const PAGE = 10;
const STEPS: Readonly<Record<string, number>> = { ArrowUp: -1, ArrowDown: 1, PageUp: -PAGE, PageDown: PAGE };

/** Where a key moves to from a token; null where it does not move. */
export function neighbour(place: Place, key: string, counts: Record<Side, number>): Place | null {
  const last = counts[place.side] - 1;
  const within = (token: number) => ({ ...place, token: Math.min(last, Math.max(0, token)) });
  if (key in STEPS) return within(place.token + STEPS[key]);
  if (key === "Home") return within(0);
  if (key === "End") return within(last);
  const side: Side | null = key === "ArrowLeft" ? "query" : key === "ArrowRight" ? "key" : null;
  if (side === null || side === place.side) return null;
  return { side, token: Math.min(place.token, counts[otherSide(place.side)] - 1) };
}
