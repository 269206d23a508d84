import { CHOICES, DEFAULTS } from "../../contract/values";
import type { Source } from "../../src/source/source";
import type { Page, PageArray, PageLayer, PageRotary, PageScores, PageStack, PageTokens } from "../../types/page";

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
  notKept?: number;
  /** Weights as bytes, or queries and keys. */
  form?: "weights" | "scores";
  /** Heads share this many key heads. */
  kvHeads?: number;
  /** Runs of visible keys: query, first key, end. */
  runs?: readonly (readonly [query: number, start: number, end: number])[];
  /** How positions turn the features. */
  rotary?: PageRotary;
  /** Weights as they should be, of a layer, a head and a query; made up where not given. */
  row?: (layer: number, head: number, query: number) => readonly number[];
  /** What is known of each head on the text; nothing where not given, and the page then has no overview. */
  kinds?: (layer: number, head: number) => Readonly<Record<string, number>>;
}

export const QUERIES = tokens(["[CLS]", "we", "went", "[SEP]", "home"], [0, 0, 0, 0, 1]);
export const KEYS = tokens(["[CLS]", "straw", "berries", ".", "[SEP]", "yes", "no"], [0, 0, 0, 0, 0, 1, 1]);

/** One stack of 3 heads, 5 queries and 7 keys with the layers 0, 2 and 5. */
export function examplePage(...stacks: readonly StackOptions[]): Example {
  const chunks = new Map<string, Uint8Array<ArrayBuffer>>();
  const made = (stacks.length > 0 ? stacks : [{}]).map((options) => exampleStack(options, chunks));
  const page: Page = {
    format: 2,
    headscope: "0.0.0",
    title: "An example",
    model: { name: "example/tiny", model_type: "bert" },
    verified: 2e-6,
    checked: "Checked against the model's own layer outputs: largest difference 2.0e-06 (passes; limit 1.1e-04)",
    stacks: made,
    selection: { view: "head", stack: made[0].name, layer: made[0].layers[0].layer, ...DEFAULTS },
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
  const whole = labels.join(" ").replaceAll(" berries", "berries").split(" ");
  return {
    pieces: [...labels],
    labels: [...labels],
    continues: labels.map((label) => label === "berries"),
    ...(whole.length < labels.length && { words: whole }),
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

type Chunks = Map<string, Uint8Array<ArrayBuffer>>;

export const EXAMPLE_FEATURES = 6;

function exampleStack(options: StackOptions, chunks: Chunks): PageStack {
  const { name = "self", heads = 3, layers = [0, 2, 5], query = QUERIES, key = KEYS } = options;
  const [queries, keys] = [query.labels.length, key.labels.length];
  const thumbs = options.row
    ? bytesOf(options.row, layers, [heads, queries])
    : exampleBytes(layers.length * heads * queries * keys, 11);
  return {
    name,
    heads,
    head_numbers: Array.from({ length: heads }, (_, head) => head),
    query,
    key,
    layers: layers.map((layer) => exampleLayer(`${name}/${layer}`, layer, [heads, queries, keys], options, chunks)),
    thumbs: put(
      chunks,
      `thumbs/${name}`,
      ["layer", "head", "query", "key"],
      [layers.length, heads, queries, keys],
      thumbs,
    ),
    ...(options.kinds && { kinds: exampleKinds(options.kinds, name, layers, heads, chunks) }),
  };
}

/** Some of the columns that a page has of each head. */
const COLUMNS = [
  ...["next", "previous", "itself", "same", "special", "top", "own", "near", "keys", "sharpness"],
  ...["rest_key", "rest_other", "top_key", "link_query", "link_key", "same_query", "same_key"],
  ...["leaver_query", "leaver_key", "link", "same_link", "leaver", "own_by_distance", "own_even", "seen"],
  ...["kind", "score"],
];

function exampleKinds(
  of: NonNullable<StackOptions["kinds"]>,
  name: string,
  layers: readonly number[],
  heads: number,
  chunks: Chunks,
): NonNullable<PageStack["kinds"]> {
  const values = layers.flatMap((layer) =>
    Array.from({ length: heads }, (_, head) => {
      const known = of(layer, head);
      return COLUMNS.map((column) => known[column] ?? Number.NaN);
    }),
  );
  const shape = [layers.length, heads, COLUMNS.length];
  return {
    kinds: [...CHOICES.kind],
    columns: COLUMNS,
    values: put(chunks, `kinds/${name}`, ["layer", "head", "column"], shape, new Float32Array(values.flat())),
    causal: false,
  };
}

function exampleLayer(
  name: string,
  layer: number,
  shape: readonly [number, number, number],
  { rowSums = "one", notKept, form = "weights", kvHeads = shape[0], runs, rotary, row }: StackOptions,
  chunks: Chunks,
): PageLayer {
  const seed = 97 * layer + name.length;
  const bytes = row ? bytesOf(row, [layer], shape) : exampleBytes(shape[0] * shape[1] * shape[2], seed);
  const bounds = runs && new Int32Array(runs.flat());
  return {
    layer,
    kind: runs ? "masked" : "full",
    kv_heads: kvHeads,
    visible: bounds ? put(chunks, `visible/${name}`, ["run", "bound"], [bounds.length / 3, 3], bounds) : null,
    weights: form === "weights" ? put(chunks, `weights/${name}`, ["head", "query", "key"], shape, bytes) : null,
    scores: form === "scores" ? exampleScores(name, seed, shape, kvHeads, chunks) : null,
    error: 0.00389,
    row_sums: rowSums,
    ...(notKept !== undefined && { not_kept: notKept }),
    ...(rotary && { rotary }),
  };
}

/** Rows of weights as bytes, axes layer, head, query, key. */
function bytesOf(
  row: NonNullable<StackOptions["row"]>,
  layers: readonly number[],
  [heads, queries]: readonly number[],
): Uint8Array<ArrayBuffer> {
  const rows = layers.flatMap((layer) =>
    Array.from({ length: heads * queries }, (_, at) => row(layer, Math.floor(at / queries), at % queries)),
  );
  return Uint8Array.from(rows.flat(), (weight) => Math.round(255 * Math.sqrt(weight)));
}

function exampleScores(
  name: string,
  seed: number,
  [heads, queries, keys]: readonly [number, number, number],
  kvHeads: number,
  chunks: Chunks,
): PageScores {
  const random = (count: number, at: number) =>
    Float32Array.from(exampleBytes(count, seed + at), (byte, index) => (index % 3 === 0 ? -1 : 1) * (byte / 64));
  const query = random(heads * queries * EXAMPLE_FEATURES, 1);
  const key = random(kvHeads * keys * EXAMPLE_FEATURES, 2);
  return {
    queries: put(chunks, `queries/${name}`, ["head", "query", "feature"], [heads, queries, EXAMPLE_FEATURES], query),
    keys: put(chunks, `keys/${name}`, ["kv_head", "key", "feature"], [kvHeads, keys, EXAMPLE_FEATURES], key),
    scale: 0.4,
    soft_cap: null,
    bias: null,
    sinks: null,
    error: 0.00012,
  };
}

type Numbers = Uint8Array<ArrayBuffer> | Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

function put(chunks: Chunks, chunk: string, axes: string[], shape: readonly number[], numbers: Numbers): PageArray {
  chunks.set(chunk, new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
  const bytes = numbers instanceof Uint8Array;
  const dtype = bytes ? "uint8" : numbers instanceof Int32Array ? "int32" : "float32";
  return { chunk, axes, shape: [...shape], dtype, encoding: bytes ? "sqrt" : "plain" };
}
