import type { ScoreParts } from "../../src/draw/scores";
import { headWeights, type WeightShape } from "../../src/draw/weights";
import { exampleBytes } from "../examples/page";

export const [HEADS, KV, QUERIES, KEYS, FEATURES] = [4, 2, 5, 7, 6];

/** Queries and keys of a layer; no two axes have the same length. */
export function scoreParts(more: Partial<ScoreParts> = {}): ScoreParts {
  return {
    heads: HEADS,
    kvHeads: KV,
    queries: QUERIES,
    keys: KEYS,
    features: FEATURES,
    query: numbers(HEADS * QUERIES * FEATURES, 3),
    key: numbers(KV * KEYS * FEATURES, 8),
    scale: 0.4,
    softCap: null,
    bias: null,
    sinks: null,
    visible: null,
    ...more,
  };
}

/** Numbers of both signs. */
export function numbers(count: number, seed: number): Float32Array<ArrayBuffer> {
  return Float32Array.from(exampleBytes(count, seed), (byte, at) => (at % 3 ? 1 : -1) * (byte / 90));
}

/** Weights that are there as bytes, axes head, query, key. */
export function byteWeights(bytes: Uint8Array, shape: WeightShape) {
  const size = shape.queries * shape.keys;
  return headWeights((head) => bytes.subarray(head * size, (head + 1) * size), shape);
}
