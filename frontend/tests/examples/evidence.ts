import type { PageArray, PageEvidence } from "../../types/page";
import { type Example, examplePage } from "./page";

// Made-up evidence for the first stack of an example: 3 layers x 3 heads, 2 patterns, 4 measures.

export interface EvidenceOptions {
  texts?: number;
  /** Whether the texts are too few to tell. */
  candidates?: boolean;
  caution?: string;
  /** Names of the two patterns. */
  names?: readonly [string, string];
  examples?: string[];
}

/** Score of each pattern for each head: head 0-1 is labelled next, 2-2 and 5-0 same, 5-0 next too. */
export const SCORES = [
  [0.1, 0.8, 0.2, 0.05, 0.3, 0.1, 0.6, 0.2, 0.4],
  [0.05, 0.1, 0.02, 0.1, 0.2, 0.5, 0.9, 0.25, 0.15],
] as const;
const THRESHOLDS = [0.5, 0.3];
export const ENTROPY = [1.5, 0.2, 2.5, 2.25, 1, 0.75, 3, 1.25, 2] as const;
const DISTANCE = [4, 1, 5, 3, 2, 6, 7, 2.5, 8];

/** An example page with evidence. */
export function exampleEvidence(options: EvidenceOptions = {}, example: Example = examplePage()): Example {
  const { texts = 24, caution = "", names = ["next", "same"], examples = ["one text", "another text"] } = options;
  const chunks = new Map(example.chunks);
  const [{ name: stack }] = example.page.stacks;
  const put = (chunk: string, axes: string[], shape: number[], values: Float32Array<ArrayBuffer>): PageArray => {
    chunks.set(chunk, new Uint8Array(values.buffer));
    return { chunk, axes, shape, dtype: "float32", encoding: "plain" };
  };
  const told = texts === 1 || options.candidates ? 1 : 2;
  const status = SCORES.flatMap((scores, pattern) => scores.map((score) => (score >= THRESHOLDS[pattern] ? told : 0)));
  chunks.set("status", Uint8Array.from(status));
  const flat = SCORES.flat();
  const unknown = texts === 1 ? Number.NaN : 1;
  const numbers = [
    flat,
    flat.map((score) => unknown * (score - 0.02)),
    flat.map((score) => unknown * (score + 0.01)),
    flat.map(() => 0.07),
    flat.map(() => unknown * 2.5),
    flat.map(() => unknown * 0.0004),
    flat.map(() => texts),
  ].flat();
  const layers = [0, 0, 0, 2, 2, 2, 5, 5, 5];
  const values = [layers, ENTROPY, DISTANCE, DISTANCE.map((_, head) => (head % 2 ? 1 : 0.25))].flat();
  const evidence: PageEvidence = {
    stack,
    model: "example/tiny",
    texts,
    tokens: 13,
    confidence: 0.95,
    alpha: 0.05,
    correction: "holm",
    caution,
    patterns: names.map((name, pattern) => ({
      name,
      says: `does ${name}`,
      source: "made up",
      threshold: THRESHOLDS[pattern],
      against: "uniform",
    })),
    status: {
      chunk: "status",
      axes: ["pattern", "layer", "head"],
      shape: [2, 3, 3],
      dtype: "uint8",
      encoding: "plain",
    },
    numbers: put("numbers", ["number", "pattern", "layer", "head"], [7, 2, 3, 3], Float32Array.from(numbers)),
    measures: [
      { name: "layer", says: "number of the layer", unit: "" },
      { name: "entropy", says: "how wide", unit: "nats" },
      { name: "distance", says: "how far", unit: "tokens" },
      { name: "class vertical", says: "share of texts", unit: "" },
    ],
    values: put("values", ["measure", "layer", "head"], [4, 3, 3], Float32Array.from(values)),
    examples,
    shown: [
      { pattern: 0, layer: 0, head: 1, texts: [1, 0], scores: [0.9, 0.7], pairs: [{ query: 2, key: 3, weight: 0.6 }] },
      { pattern: 1, layer: 5, head: 0, texts: [0], scores: [0.95], pairs: [] },
    ],
  };
  return { page: { ...example.page, evidence }, chunks };
}
