import type { Answered, Asked } from "../src/source/model";
import type { LiveFacts, LiveOpening, LiveOutput, ModelChange } from "../types/live";
import { type Example, examplePage, exampleSource, tokens } from "./examples/page";

// A model as its server answers: tokens are the words of a text, weights are made up.

export const FACTS: LiveFacts = {
  name: "example/tiny",
  device: "cpu",
  dtype: "float32",
  revision: "0123456789abcdef",
  implementation: "eager",
  kind: "next-token",
  untrained: "",
  fields: ["text", "text_b"],
  limits: { tokens: 64, seconds: 20, characters: 200, changes: 8, queue: 4, picture_bytes: 1000 },
  stacks: [{ name: "self", layers: [0, 2, 5], heads: 3 }],
  chat: false,
  writes: true,
  lens: true,
  matters: ["gradient", "exact"],
  mask: "",
  picture_mark: "",
  sampling_rate: 0,
  loading: false,
  failed: "",
  threads: 1,
  text: "we went home",
  messages: [],
  beside: "",
  atlas: 0,
  versions: { headscope: "0.0.0" },
};

/** The page of a text: its words between [CLS] and [SEP]. */
export function pageOf(text: string): Example {
  const example = examplePage({
    query: tokens(["[CLS]", ...text.split(" "), "[SEP]"]),
    kinds: () => ({ kind: 1, score: 0.5 }),
  });
  return { ...example, page: { ...example.page, title: text } };
}

const guess = (id: number, label: string, probability: number) => ({ id, label, continues: false, probability });

/** What the model says of a text: with changes also what it said before. */
export function outputOf(changes: readonly ModelChange[]): LiveOutput {
  const before = [guess(1, "home", 0.5), guess(2, "away", 0.25)];
  const after = [guess(2, "away", 0.45), guess(3, "back", 0.125)];
  const place = { at: 3, token: "home", before, ...(changes.length > 0 && { after, kl: 0.125 }) };
  return { kind: "next-token", stack: "self", places: [place], note: "" };
}

/** The answer to a question, as a page holds it. */
export function answered(asked: Asked): Answered {
  const example = pageOf(asked.input.text ?? "");
  const opening = { id: "r1", header: example.page, output: outputOf(asked.changes), changes: [...asked.changes] };
  return {
    asked,
    source: exampleSource(example),
    opening: { ...opening, address: "", python: "", timings: {}, chunks: [] },
  };
}

/** The answer to a question, in the bytes that a server sends. */
export function answerTo(text: string, changes: readonly ModelChange[], id = "r1"): Uint8Array<ArrayBuffer> {
  const { page, chunks } = pageOf(text);
  const opening: LiveOpening = {
    id,
    header: page,
    output: outputOf(changes),
    changes: [...changes],
    address: "",
    python: changes.length > 0 ? "interventions=[hs.Zero(layer=2, heads=[1])]" : "",
    timings: { capture: 12 },
    chunks: [...chunks].map(([name, bytes]) => [name, bytes.length]),
  };
  const json = new TextEncoder().encode(JSON.stringify(opening));
  const parts = [new Uint8Array(new Uint32Array([json.length]).buffer), json, ...chunks.values()];
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
