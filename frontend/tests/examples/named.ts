import type { Selection } from "../../src/state/selection";
import type { PageArray, PageLinks, PageQuantity, PageTokens } from "../../types/page";
import { exampleEvidence } from "./evidence";
import { type Example, examplePage, tokens } from "./page";

// Each view with something worth seeing: the playground, the snapshots and the pictures of docs/examples.md.

export interface NamedExample {
  /** What there is to be seen. */
  readonly title: string;
  readonly selection: Partial<Selection>;
  make(): Example;
}

const PAIR = tokens(
  "[CLS] the rabbit hopped across the road [SEP] the turtle followed because it was slow [SEP]".split(" "),
  [...Array(8).fill(0), ...Array(8).fill(1)],
);
const STORY = tokens("<s> when Mary and John went to the store John gave a drink to Mary".split(" "));
const TREE = tokens("[CLS] the black cat sleeps on a warm stone [SEP]".split(" "));
const FRENCH = tokens("<s> le chat noir dort </s>".split(" "));
const ENGLISH = tokens("the black cat sleeps .".split(" "));
const SCRIPTS = tokens(["[CLS]", "القطة", "تنام", "חתול", "ישן", "猫", "在", "睡觉", "고양이", "👩‍💻", "[SEP]"]);

/** Rows that sum to 1, out of what is given for each key. */
function normal(sizes: readonly number[]): number[] {
  const sum = sizes.reduce((total, size) => total + size, 0);
  return sizes.map((size) => (sum > 0 ? size / sum : 0));
}

/** Always the same number between 0 and 1 for the same places. */
function noise(...places: readonly number[]): number {
  let state = 7;
  for (const place of places) state = Math.imul(state ^ (place + 0x9e37), 0x85ebca6b) >>> 3;
  return (Math.imul(state, 1664525) >>> 8) / 2 ** 24;
}

/** Heads of several kinds: to the next token, to the one before, to the same word, to separators, to everything. */
function row({ labels, special }: PageTokens, causal = false) {
  return (layer: number, head: number, query: number) =>
    normal(
      labels.map((label, key) => {
        if (causal && key > query) return 0;
        const kinds = [key === query - 1, key === query + 1, label === labels[query], special[key] || key === 0, true];
        const strong = kinds[(head + layer) % kinds.length] ? 1 : 0;
        return strong + (2 * noise(layer, head, query, key)) / labels.length + (causal && key === 0 ? 0.9 : 0);
      }),
    );
}

function causalRuns(count: number): [query: number, start: number, end: number][] {
  return Array.from({ length: count }, (_, query) => [query, 0, query + 1]);
}

const LONG = tokens(Array.from({ length: 320 }, (_, at) => `w${at % 40}`));
const CAUSAL = { query: STORY, key: STORY, runs: causalRuns(STORY.labels.length), row: row(STORY, true) };

/** What a head of `row` does, as the overview has it. */
function doing(layer: number, head: number): Record<string, number> {
  const at = (head + layer) % 5;
  const [kind, name] = [
    [1, "previous"],
    [0, "next"],
    [2, "same"],
    [6, "special"],
    [5, "keys"],
  ][at] as [number, string];
  const score = 0.9 - 0.06 * layer - 0.01 * head;
  const places = { rest_key: 0, rest_other: 7, top_key: 0, link_query: 2, link_key: 3, same_query: 1, same_key: 8 };
  const numbers = {
    next: 0.06,
    previous: 0.05,
    itself: 0.05,
    same: 0.07,
    special: 0.12,
    top: 0.2,
    own: 0.6,
    near: 0.3,
  };
  const rest = { keys: 3 + 2 * at, seen: 16, sharpness: 0.4 + 0.1 * at, link: 0.2, same_link: 0.5, own_even: 0.5 };
  const own = name === "keys" ? {} : { [name]: score };
  return { ...places, ...numbers, ...rest, ...own, leaver_query: -1, own_by_distance: 0.6, kind, score };
}

export const EXAMPLES: Readonly<Record<string, NamedExample>> = {
  overview: {
    title:
      "All heads of a small model, the clearest in full next to them, and what they do on this text in one sentence",
    selection: { view: "overview" },
    make: () => examplePage({ heads: 5, layers: [0, 1, 2, 3], query: PAIR, key: PAIR, row: row(PAIR), kinds: doing }),
  },
  pair: {
    title: "A pair of sentences in the head view: heads of five kinds, the special tokens muted",
    selection: { view: "head", layer: 1, hide_special: true },
    make: () => examplePage({ heads: 5, layers: [0, 1, 2, 3], query: PAIR, key: PAIR, row: row(PAIR) }),
  },
  pinned: {
    title: "The same, one token pinned and only what goes from the second sentence to the first",
    selection: { view: "head", layer: 1, heads: [1], query: [13], filter: "ba" },
    make: () => examplePage({ heads: 5, layers: [0, 1, 2, 3], query: PAIR, key: PAIR, row: row(PAIR) }),
  },
  sink: {
    title: "A causal model whose first token is a sink, and what is left without it",
    selection: { view: "matrix", layer: 2, heads: [0], sinks: false },
    make: () => examplePage({ heads: 4, layers: [0, 1, 2], ...CAUSAL }),
  },
  grouped: {
    title: "Grouped heads: six heads on two key/value heads, framed in the grid",
    selection: { view: "head", layer: 1, heads: [0] },
    make: () => examplePage({ heads: 6, kvHeads: 2, layers: [0, 1, 2, 3], ...CAUSAL }),
  },
  rotary: {
    title: "The neurons of a rotary model, one key pinned: its score neuron by neuron, and by distance",
    selection: { view: "neuron", layer: 0, heads: [1], query: [9], key: [4] },
    make: () =>
      examplePage({
        heads: 3,
        layers: [0, 1],
        form: "scores",
        query: STORY,
        key: STORY,
        runs: causalRuns(STORY.labels.length),
        rotary: { frequencies: [1, 0.1, 0.01], style: "halves", start: 0 },
      }),
  },
  cross: {
    title: "Cross-attention: five target tokens look at six source tokens",
    selection: { view: "head", stack: "cross", layer: 0, query: [2] },
    make: () =>
      examplePage(
        { name: "encoder", heads: 4, layers: [0, 1], query: FRENCH, key: FRENCH },
        { name: "cross", heads: 4, layers: [0, 1, 2], query: ENGLISH, key: FRENCH },
      ),
  },
  scripts: {
    title:
      "Words from right to left, wide characters and emoji in the text view (boxes where a machine has no font for them)",
    selection: { view: "text", layer: 0, heads: [2], query: [5] },
    make: () => examplePage({ heads: 4, layers: [0, 1], query: SCRIPTS, key: SCRIPTS, row: row(SCRIPTS) }),
  },
  tile: {
    title: "One query and one key in all heads of all layers",
    selection: { view: "head", layer: 1, heads: [2], query: [13], key: [9] },
    make: () => examplePage({ heads: 5, layers: [0, 1, 2, 3], query: PAIR, key: PAIR, row: row(PAIR) }),
  },
  long: {
    title: "320 tokens in the dark: eight times the same words, and a head that finds them",
    selection: { view: "matrix", layer: 0, heads: [2], theme: "dark" },
    make: () => examplePage({ heads: 3, layers: [0], query: LONG, key: LONG, row: row(LONG) }),
  },
  labels: {
    title: "Evidence of what heads do: labels in the grid, heads by two of their measures, and a card for one of them",
    selection: { view: "head", layer: 0, heads: [1] },
    make: () => exampleEvidence(),
  },
  links: {
    title: "A gold tree over the words, and below them what one head looks at most: hits, misses, and both as a list",
    selection: { view: "text", layer: 0, heads: [1], query: [2] },
    make: () => withTree(examplePage({ heads: 4, layers: [0, 1, 2], query: TREE, key: TREE, row: row(TREE) })),
  },
  contribution: {
    title: "What keys add in place of weights: the sink takes most of the attention, and its value is short",
    selection: { view: "head", layer: 1, heads: [2], query: [3], quantity: "contribution" },
    make: () =>
      withValueNorms(examplePage({ heads: 4, layers: [0, 1, 2], ...CAUSAL }), (key) =>
        key === 0 ? 0.1 : 1 + noise(key),
      ),
  },
};

/** The example with the dependency tree of its words. */
function withTree({ page, chunks }: Example): Example {
  const labels = page.stacks[0].query.labels.slice(1, -1);
  const arcs: [dependent: number, head: number, label: string][] = [
    [0, 2, "det"],
    [1, 2, "amod"],
    [2, 3, "nsubj"],
    [4, 7, "case"],
    [5, 7, "det"],
    [6, 7, "amod"],
    [7, 3, "obl"],
  ];
  const links: PageLinks = {
    stack: page.stacks[0].name,
    name: "example-1",
    tree: true,
    words: labels.map((label, word) => ({ label, tokens: [word + 1] })),
    arcs: arcs.map(([dependent, head, label]) => ({ dependent, head, label })),
  };
  return { page: { ...page, links }, chunks };
}

/** The example with value norms of every key, the same in all heads. */
function withValueNorms({ page, chunks }: Example, normOf: (key: number) => number): Example {
  const [stack] = page.stacks;
  const keys = stack.key.labels.length;
  const norms = Float32Array.from({ length: stack.heads * keys }, (_, at) => normOf(at % keys));
  const array: PageArray = {
    chunk: "value_norms",
    axes: ["head", "key"],
    shape: [stack.heads, keys],
    dtype: "float32",
    encoding: "plain",
  };
  const contribution: PageQuantity = {
    name: "contribution",
    label: "contribution",
    explanation: "weight × ‖f(x)‖: the length of the vector that a key adds through a head",
    signed: false,
    per: "head",
  };
  const layers = stack.layers.map((layer) => ({ ...layer, value_norms: array }));
  return {
    page: { ...page, stacks: [{ ...stack, layers }], quantities: [contribution] },
    chunks: new Map([...chunks, ["value_norms", new Uint8Array(norms.buffer)]]),
  };
}
