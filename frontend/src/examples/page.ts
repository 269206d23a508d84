import type { Page, PageLayer, PageStack, PageTokens } from "../contract/page";
import type { Source } from "../source/source";

// Small made-up pages for tests and for trying a view out. No two axes have the same length.

export interface Example {
  readonly page: Page;
  /** The bytes of each chunk, unpacked. */
  readonly chunks: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

export interface StackOptions {
  name?: string;
  heads?: number;
  layers?: readonly number[];
  query?: PageTokens;
  key?: PageTokens;
  rowSums?: PageLayer["row_sums"];
}

export const QUERIES = tokens(["[CLS]", "we", "went", "[SEP]", "home"], [0, 0, 0, 0, 1]);
export const KEYS = tokens(["[CLS]", "straw", "berries", ".", "[SEP]", "yes", "no"], [0, 0, 0, 0, 0, 1, 1]);

/** One stack of 3 heads, 5 queries and 7 keys with the layers 0, 2 and 5. */
export function examplePage(...stacks: readonly StackOptions[]): Example {
  const chunks = new Map<string, Uint8Array<ArrayBuffer>>();
  const made = (stacks.length > 0 ? stacks : [{}]).map((options) => exampleStack(options, chunks));
  const page: Page = {
    format: 1,
    headscope: "0.0.0",
    title: "An example",
    model: { name: "example/tiny", model_type: "bert" },
    verified: 2e-6,
    stacks: made,
    selection: { stack: made[0].name, layer: made[0].layers[0].layer, heads: null, theme: "auto" },
  };
  return { page, chunks };
}

export function exampleSource({ page, chunks }: Example): Source {
  return {
    header: page,
    chunk: async (name) => {
      const bytes = chunks.get(name);
      if (!bytes) throw new Error(`no chunk ${name}`);
      return bytes;
    },
  };
}

/** Tokens named as given: those in brackets are special. */
export function tokens(labels: readonly string[], segments?: readonly number[]): PageTokens {
  return {
    pieces: [...labels],
    labels: [...labels],
    continues: labels.map((label) => label === "berries"),
    special: labels.map((label) => /^\[.+\]$/.test(label)),
    segments: segments ? [...segments] : labels.map(() => 0),
  };
}

/** Bytes that differ from weight to weight, always the same for the same seed; about one in six is 0. */
export function exampleBytes(count: number, seed: number): Uint8Array<ArrayBuffer> {
  let state = seed + 1;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const random = state / 2 ** 32;
    return random < 1 / 6 ? 0 : 255 * random ** 3;
  });
}

function exampleStack(options: StackOptions, chunks: Map<string, Uint8Array<ArrayBuffer>>): PageStack {
  const { name = "self", heads = 3, layers = [0, 2, 5], query = QUERIES, key = KEYS, rowSums = "one" } = options;
  const shape = [heads, query.labels.length, key.labels.length];
  return {
    name,
    heads,
    query,
    key,
    layers: layers.map((layer) => {
      const chunk = `weights/${name}/${layer}`;
      const count = shape.reduce((product, size) => product * size, 1);
      chunks.set(chunk, exampleBytes(count, 97 * layer + name.length));
      const weights: PageLayer["weights"] = {
        chunk,
        axes: ["head", "query", "key"],
        shape,
        dtype: "uint8",
        encoding: "sqrt",
        error: 0.00389,
      };
      return { layer, kind: "full", weights, row_sums: rowSums };
    }),
  };
}
