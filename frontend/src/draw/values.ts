import { signedByte } from "./ramps";
import { type ScoreParts, scoreAt, scoreRow } from "./scores";
import { type LayerWeights, once, toByte, WEIGHT, type WeightShape } from "./weights";

/** What the bytes of a quantity stand for. */
export interface Code {
  /** The part of the largest size that each byte stands for: 0 to 1, or -1 to 1 where signed. */
  readonly parts: Float32Array;
  /** The place of each byte in the order of sizes; 0 is nothing. */
  readonly levels: Uint8Array;
  /** The size of each level, as part of the largest. */
  readonly sizes: Float32Array;
  readonly signed: boolean;
}

/** Square roots, as of weights. */
const PLAIN: Code = {
  parts: WEIGHT,
  levels: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  sizes: WEIGHT,
  signed: false,
};

/** 128 is none; 1 and 255 are the largest sizes. */
const SIGNED: Code = {
  parts: Float32Array.from({ length: 256 }, (_, byte) => Math.max(-1, (byte - 128) / 127)),
  levels: Uint8Array.from({ length: 256 }, (_, byte) => Math.min(127, Math.abs(byte - 128))),
  sizes: Float32Array.from({ length: 256 }, (_, level) => Math.min(1, level / 127)),
  signed: true,
};

/** A number for each head, query and key: weights, or another quantity in their place. */
export interface LayerValues extends LayerWeights {
  /** How bytes stand for values; as those of weights where absent. */
  readonly code?: Code;
  /** The value of a head that is stored as largest size; 1 where absent. */
  top?(head: number): number;
  /** The rows sum to anything, so that each counts alike where shares are told; else their sums are masses. */
  readonly free?: boolean;
}

export function codeOf({ code }: LayerValues): Code {
  return code ?? PLAIN;
}

export function topOf(values: LayerValues, head: number): number {
  return values.top?.(head) ?? 1;
}

/** The scores of a layer; -Infinity in a row where the query may not look. */
export function scoreValues(parts: ScoreParts): LayerValues {
  const { heads, queries, keys } = parts;
  const worked = once((head) => {
    const scores = new Float32Array(queries * keys);
    for (let query = 0; query < queries; query++) {
      scoreRow(parts, head, query, scores.subarray(query * keys, (query + 1) * keys));
    }
    return signedBytes(scores);
  });
  return {
    heads,
    queries,
    keys,
    code: SIGNED,
    free: true,
    top: (head) => worked(head).top,
    bytes: (head) => worked(head).bytes,
    row: (head, query) => scoreRow(parts, head, query),
    column: (head, key) => Float32Array.from({ length: queries }, (_, query) => scoreAt(parts, head, query, key)),
  };
}

/** Weights times the length of what each key's value adds, axes head, key: on one scale for all heads of the layer. */
export function contributionValues(weights: LayerWeights, norms: Float32Array): LayerValues {
  const { heads, queries, keys } = weights;
  const longest = largest(norms) || 1;
  const bytes = once((head) => {
    const of = weights.bytes(head);
    const made = new Uint8Array(of.length);
    for (let at = 0; at < of.length; at++) {
      made[at] = toByte((WEIGHT[of[at]] * norms[head * keys + (at % keys)]) / longest);
    }
    return made;
  });
  return {
    heads,
    queries,
    keys,
    free: true,
    top: () => longest,
    bytes,
    row: (head, query) => weights.row(head, query).map((weight, key) => weight * norms[head * keys + key]),
    column: (head, key) => weights.column(head, key).map((weight) => weight * norms[head * keys + key]),
  };
}

/** A quantity that is there as numbers, axes head, query, key: on one scale for all heads. */
export function arrayValues(numbers: Float32Array, shape: WeightShape, signed: boolean): LayerValues {
  const { queries, keys } = shape;
  const size = queries * keys;
  const most = largest(numbers) || 1;
  const of = (head: number) => numbers.subarray(head * size, (head + 1) * size);
  return {
    ...shape,
    ...(signed && { code: SIGNED }),
    free: true,
    top: () => most,
    bytes: once((head) =>
      signed ? signedBytes(of(head), most).bytes : Uint8Array.from(of(head), (value) => toByte(value / most)),
    ),
    row: (head, query) => of(head).slice(query * keys, (query + 1) * keys),
    column: (head, key) => Float32Array.from({ length: queries }, (_, query) => of(head)[query * keys + key]),
  };
}

export function signedBytes(values: Float32Array, top = largest(values)): { bytes: Uint8Array; top: number } {
  const bytes = Uint8Array.from(values, (value) => (Number.isFinite(value) ? signedByte(value, top) : 128));
  return { bytes, top };
}

/** The largest size of a number that is finite. */
export function largest(values: Iterable<number>): number {
  let most = 0;
  for (const value of values) if (Number.isFinite(value) && Math.abs(value) > most) most = Math.abs(value);
  return most;
}
