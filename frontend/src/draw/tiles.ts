import type { Level } from "./pyramid";
import { signedByte } from "./ramps";
import { type ScoreParts, scoreRow } from "./scores";
import { type LayerWeights, toByte, WEIGHT } from "./weights";

/** The weights of one head, or the mean of several, as bytes. */
export function weightTile(weights: LayerWeights, heads: readonly number[]): Level {
  const { queries: rows, keys: columns } = weights;
  if (heads.length === 1) return { bytes: weights.bytes(heads[0]), rows, columns };
  const sums = new Float32Array(rows * columns);
  for (const head of heads) {
    const bytes = weights.bytes(head);
    for (let at = 0; at < sums.length; at++) sums[at] += WEIGHT[bytes[at]];
  }
  return { bytes: Uint8Array.from(sums, (sum) => toByte(sum / heads.length)), rows, columns };
}

/** The scores of one head as signed bytes, and the score that the outermost bytes stand for. */
export function scoreTile(parts: ScoreParts, head: number): Level & { readonly most: number } {
  const { queries: rows, keys: columns } = parts;
  const scores = new Float32Array(columns);
  let most = 0;
  for (let query = 0; query < rows; query++) most = Math.max(most, largest(scoreRow(parts, head, query, scores)));
  const bytes = new Uint8Array(rows * columns).fill(128);
  for (let query = 0; query < rows; query++) {
    scoreRow(parts, head, query, scores);
    for (let key = 0; key < columns; key++) {
      if (scores[key] !== Number.NEGATIVE_INFINITY) bytes[query * columns + key] = signedByte(scores[key], most);
    }
  }
  return { bytes, rows, columns, most };
}

/** The largest size of a number that is finite. */
function largest(values: Float32Array): number {
  let most = 0;
  for (const value of values) if (Number.isFinite(value) && Math.abs(value) > most) most = Math.abs(value);
  return most;
}
