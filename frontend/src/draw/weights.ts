/** The weights of one layer as they travel: one byte each, axes head, query, key. */
export interface LayerWeights {
  readonly bytes: Uint8Array;
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
}

/** The weight that each byte stands for. */
export const WEIGHT = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);

/** The bytes of one head, axes query, key. */
export function headBytes({ bytes, queries, keys }: LayerWeights, head: number): Uint8Array {
  return bytes.subarray(head * queries * keys, (head + 1) * queries * keys);
}
