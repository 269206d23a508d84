import type { Tile } from "./heat";
import type { Mask } from "./mask";
import { eachRun, type Visible } from "./scores";
import type { LayerValues } from "./values";
import { type LayerWeights, once, toByte, WEIGHT } from "./weights";

// How often the even share a weight is: the share that each key would get if a query gave the same to all it sees.

/**
 * What even attention gives, as the weights of one head.
 *
 * Where weights came as bytes it is rounded as they are, so that an even head has exactly its even share.
 */
export function evenWeights(
  visible: Visible | null,
  { queries, keys }: Pick<LayerWeights, "queries" | "keys">,
  rounded: boolean,
): LayerWeights {
  const shares = Float32Array.from({ length: queries }, (_, query) => {
    let seen = 0;
    eachRun(visible, query, keys, (start, end) => {
      seen += end - start;
    });
    const share = seen && 1 / seen;
    return rounded ? WEIGHT[toByte(share)] : share;
  });
  const row = (_: number, query: number) => {
    const values = new Float32Array(keys);
    eachRun(visible, query, keys, (start, end) => values.fill(shares[query], start, end));
    return values;
  };
  const column = (_: number, key: number) =>
    shares.map((share, query) => {
      let seen = 0;
      eachRun(visible, query, keys, (start, end) => {
        if (key >= start && key < end) seen = share;
      });
      return seen;
    });
  const bytes = once(() => {
    const all = new Uint8Array(queries * keys);
    for (let query = 0; query < queries; query++) all.set(row(0, query).map(toByte), query * keys);
    return all;
  });
  return { heads: 1, queries, keys, bytes, row, column };
}

/** What even attention gives to each key, as mean over the queries and of bytes, as `received` tells it of a head. */
export function evenReceived(even: LayerValues, mask: Mask): Float32Array {
  const sums = new Float32Array(even.keys);
  for (let query = 0; query < even.queries; query++) {
    if (!mask.query[query]) continue;
    const row = even.row(0, query);
    for (let key = 0; key < sums.length; key++) if (mask.key[key]) sums[key] += WEIGHT[toByte(row[key])] / even.queries;
  }
  return sums;
}

/** Weights as multiples of their even shares; 0 where there is none. */
export function liftsOf(weights: Float32Array, even: Float32Array): Float32Array {
  return weights.map((weight, token) => liftOf(weight, even[token]));
}

export function liftOf(weight: number, even: number): number {
  return even > 0 ? weight / even : 0;
}

/** How often the even share has the full colour: as often as one key can have it, from 8 to 64 times. */
export function topLift(keys: number): number {
  return Math.min(64, Math.max(8, keys));
}

/** Multiples as bytes on a scale of doublings: up to the even share nothing, from `top` times on the last. */
export function liftByte(lift: number, top: number): number {
  return lift > 1 ? Math.min(255, Math.round((255 * Math.log2(lift)) / Math.log2(top))) : 0;
}

/** The weights of one head, or the mean of several, as bytes of their multiples. */
export function liftTile({ bytes, rows, columns, top: most }: Tile, even: LayerValues): Tile {
  const top = topLift(columns);
  const made = new Uint8Array(rows * columns);
  for (let query = 0; query < rows; query++) {
    const shares = even.row(0, query);
    for (let key = 0, at = query * columns; key < columns; key++, at++) {
      if (bytes[at] > 0) made[at] = liftByte(liftOf(WEIGHT[bytes[at]] * most, WEIGHT[toByte(shares[key])]), top);
    }
  }
  return { bytes: made, rows, columns, top };
}
