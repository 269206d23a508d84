import type { PageStack } from "../contract/page";
import type { LayerWeights } from "./weights";

/** Texts with more weights than this are not searched: that would be slow. */
const MOST_WEIGHTS = 2 ** 21;

/** The two different words with the largest weight of a head: no special tokens, and none of the keys left out. */
export function strongestWords(
  weights: LayerWeights,
  head: number,
  { query, key }: PageStack,
  leftOut: readonly number[],
): { query: number; key: number } {
  const { queries, keys } = weights;
  let found = { query: 0, key: 0 };
  if (queries * keys > MOST_WEIGHTS) return found;
  const bytes = weights.bytes(head);
  let most = 0;
  for (let from = 0; from < queries; from++) {
    for (let to = 0; to < keys; to++) {
      const byte = bytes[from * keys + to];
      if (byte <= most || query.special[from] || key.special[to] || leftOut.includes(to)) continue;
      if (from === to && query.pieces[from] === key.pieces[to]) continue;
      most = byte;
      found = { query: from, key: to };
    }
  }
  return found;
}
