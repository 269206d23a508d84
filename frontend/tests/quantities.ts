import type { PageArray } from "../types/page";
import { type Example, exampleBytes, examplePage, type StackOptions } from "./examples/page";

// An example page that holds more than weights: value norms, one quantity per head, one for all heads together.

const [HEADS, QUERIES, KEYS] = [3, 5, 7];

export const ROLLOUT = {
  name: "rollout",
  label: "rollout",
  explanation: "what flows",
  signed: false,
  per: "layer",
} as const;
export const DIFFERENCE = {
  name: "difference",
  label: "difference",
  explanation: "a − b",
  signed: true,
  per: "head",
} as const;
export const CONTRIBUTION = {
  name: "contribution",
  label: "contribution",
  explanation: "a f",
  signed: false,
  per: "head",
} as const;

export const NORMS = Float32Array.from({ length: HEADS * KEYS }, (_, at) => 0.25 * ((at * 5) % 11));
export const BYTES = { rollout: exampleBytes(QUERIES * KEYS, 31), difference: signedExample(HEADS * QUERIES * KEYS) };

/** The quantities stand in the first two layers; the last one has weights alone. */
export function quantityPage(options: StackOptions = {}): Example {
  const { page, chunks } = examplePage(options);
  const all = new Map<string, Uint8Array<ArrayBuffer>>(chunks);
  all.set("norms", new Uint8Array(NORMS.buffer));
  all.set("rollout", BYTES.rollout);
  all.set("difference", BYTES.difference);
  const [stack] = page.stacks;
  const layers = stack.layers.map((layer, at) =>
    at < 2 ? { ...layer, value_norms: norms(), quantities: { rollout: rollout(), difference: difference() } } : layer,
  );
  return {
    page: { ...page, stacks: [{ ...stack, layers }], quantities: [CONTRIBUTION, ROLLOUT, DIFFERENCE] },
    chunks: all,
  };
}

function norms(): PageArray {
  return { chunk: "norms", axes: ["head", "key"], shape: [HEADS, KEYS], dtype: "float32", encoding: "plain" };
}

function rollout(): PageArray {
  return {
    chunk: "rollout",
    axes: ["query", "key"],
    shape: [QUERIES, KEYS],
    dtype: "uint8",
    encoding: "sqrt",
    most: 0.5,
  };
}

function difference(): PageArray {
  const axes = ["head", "query", "key"];
  return { chunk: "difference", axes, shape: [HEADS, QUERIES, KEYS], dtype: "uint8", encoding: "signed", most: 4 };
}

function signedExample(count: number): Uint8Array<ArrayBuffer> {
  return exampleBytes(count, 7).map((byte, at) => 128 + (at % 2 ? -1 : 1) * (byte >> 1));
}
