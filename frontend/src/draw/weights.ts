/** The weights of one layer, however they came: as bytes, or recomputed from queries and keys. */
export interface LayerWeights {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  /** One byte for each weight of a head, axes query, key: what pictures are drawn from. WEIGHT decodes it. */
  bytes(head: number): Uint8Array;
  /** The weights of one query of a head, as exact as the page has them. */
  row(head: number, query: number): Float32Array;
  /** The weights of one key of a head. */
  column(head: number, key: number): Float32Array;
}

/** The weight that each byte stands for. */
export const WEIGHT = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);

export type WeightShape = Pick<LayerWeights, "heads" | "queries" | "keys">;

/** Weights of which the bytes of each head are an array of their own, axes query, key. */
export function headWeights(
  bytesOf: (head: number) => Uint8Array,
  { heads, queries, keys }: WeightShape,
): LayerWeights {
  return {
    heads,
    queries,
    keys,
    bytes: bytesOf,
    row: (head, query) =>
      Float32Array.from(bytesOf(head).subarray(query * keys, (query + 1) * keys), (byte) => WEIGHT[byte]),
    column: (head, key) => {
      const of = bytesOf(head);
      return Float32Array.from({ length: queries }, (_, query) => WEIGHT[of[query * keys + key]]);
    },
  };
}

/** A function of a head that is worked out once for each. */
export function once<Value>(make: (head: number) => Value): (head: number) => Value {
  const known = new Map<number, Value>();
  return (head) => {
    const value = known.get(head) ?? make(head);
    known.set(head, value);
    return value;
  };
}

/** The weights with some keys left out (0 in `kept`) and each row renormalised to the sum that it had. */
export function withoutKeys(weights: LayerWeights, kept: Uint8Array): LayerWeights {
  const { heads, queries, keys } = weights;
  const row = (head: number, query: number) => {
    const values = weights.row(head, query);
    const factor = factorOf(values, kept);
    for (let key = 0; key < keys; key++) values[key] = kept[key] ? values[key] * factor : 0;
    return values;
  };
  /** The bytes of a head, and what each row is multiplied by. */
  const worked = once((head) => {
    const bytes = new Uint8Array(queries * keys);
    const factors = new Float32Array(queries);
    for (let query = 0; query < queries; query++) {
      const values = weights.row(head, query);
      factors[query] = factorOf(values, kept);
      for (let key = 0; key < keys; key++) {
        bytes[query * keys + key] = kept[key] ? toByte(values[key] * factors[query]) : 0;
      }
    }
    return { bytes, factors };
  });
  const column = (head: number, key: number) => {
    const { factors } = worked(head);
    return weights.column(head, key).map((weight, query) => (kept[key] ? weight * factors[query] : 0));
  };
  return { heads, queries, keys, bytes: (head) => worked(head).bytes, row, column };
}

function factorOf(row: Float32Array, kept: Uint8Array): number {
  let [all, rest] = [0, 0];
  for (let key = 0; key < row.length; key++) {
    all += row[key];
    if (kept[key]) rest += row[key];
  }
  return rest > 0 ? all / rest : 0;
}

export function toByte(weight: number): number {
  return (255 * Math.sqrt(Math.min(1, weight)) + 0.5) | 0;
}
