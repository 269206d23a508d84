/** The weights of one layer, however they came: as bytes, or recomputed from queries and keys. */
export interface LayerWeights {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  /** One byte for each weight of a head, axes query, key: what pictures are drawn from. WEIGHT decodes it. */
  bytes(head: number): Uint8Array;
  /** The weights of one query of a head, as exact as the page has them. */
  row(head: number, query: number): Float32Array;
  /** The weights of one key of a head, where that is quicker than to read them from all rows: see `columnOf`. */
  column?(head: number, key: number): Float32Array;
}

/** What a key of a head has of each query. */
export function columnOf(of: LayerWeights, head: number, key: number): Float32Array {
  return of.column?.(head, key) ?? Float32Array.from({ length: of.queries }, (_, query) => of.row(head, query)[key]);
}

/** The bytes of a head, made of its rows. */
export function bytesOfRows({ queries, keys, row }: Pick<LayerWeights, "queries" | "keys" | "row">) {
  return once((head) => {
    const all = new Uint8Array(queries * keys);
    for (let query = 0; query < queries; query++) all.set(row(head, query).map(toByte), query * keys);
    return all;
  });
}

/** The weight that each byte stands for. */
export const WEIGHT = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);

export type WeightShape = Pick<LayerWeights, "heads" | "queries" | "keys">;

/** Weights of which the bytes of each head are an array of their own, axes query, key. */
export function headWeights(bytesOf: (head: number) => Uint8Array, shape: WeightShape): LayerWeights {
  const { keys } = shape;
  const bytesIn = (head: number, query: number) => bytesOf(head).subarray(query * keys, (query + 1) * keys);
  return {
    ...shape,
    bytes: bytesOf,
    row: (head, query) => Float32Array.from(bytesIn(head, query), (byte) => WEIGHT[byte]),
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
export function withoutKeys({ heads, queries, keys, row }: LayerWeights, kept: Uint8Array): LayerWeights {
  const own = (head: number, query: number) => {
    const values = row(head, query);
    const factor = factorOf(values, kept);
    return values.map((value, key) => (kept[key] ? value * factor : 0));
  };
  return { heads, queries, keys, row: own, bytes: bytesOfRows({ queries, keys, row: own }) };
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
