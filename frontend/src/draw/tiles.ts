import type { Level } from "./pyramid";
import { signedByte } from "./ramps";
import { codeOf, type LayerValues, largest, sharedTop, topOf } from "./values";
import { toByte } from "./weights";

/** A matrix as bytes, and the value that the last of them stands for. */
export interface Tile extends Level {
  readonly top: number;
}

/** The values of one head, or the mean of several. */
export function tileOf(values: LayerValues, heads: readonly number[]): Tile {
  const { queries: rows, keys: columns } = values;
  if (heads.length === 1) return { bytes: values.bytes(heads[0]), rows, columns, top: sharedTop(values, heads) };
  const { parts, signed } = codeOf(values);
  const sums = new Float32Array(rows * columns);
  for (const head of heads) {
    const bytes = values.bytes(head);
    const factor = topOf(values, head) / heads.length;
    for (let at = 0; at < sums.length; at++) sums[at] += parts[bytes[at]] * factor;
  }
  const top = signed ? largest(sums) : sharedTop(values, heads);
  const bytes = Uint8Array.from(sums, (sum) => (signed ? signedByte(sum, top) : toByte(sum / top)));
  return { bytes, rows, columns, top };
}
