// Generated from page.schema.json by `npm run contract`; change src/headscope/views/contract.py instead.

/**
 * The header of a page: everything but the bytes of the arrays.
 */
export interface Page {
  format: 2;
  /**
   * Version of headscope that wrote the page.
   */
  headscope: string;
  title: string;
  model: PageModel;
  /**
   * Largest difference between what was recomputed and the model's own; None for bare arrays.
   */
  verified: number | null;
  stacks: PageStack[];
  /**
   * All that some layer has beside weights and scores; weights too, where they are called
   * otherwise.
   */
  quantities?: PageQuantity[];
  /**
   * What the page is a comparison of, and how its tokens were aligned.
   */
  note?: string;
  /**
   * Why some of the tokens are but numbers of positions.
   */
  numbered?: string;
  /**
   * Against what the layers were checked, the largest difference and its limit; and of a long
   * text, what comes from some of its queries only.
   */
  checked?: string;
  /**
   * Layers whose attention was not seen, and how the tokens of a very long text are in groups.
   */
  unseen?: string;
  selection: PageSelection;
  /**
   * Axes row, column, channel: red, green and blue of the pictures that the patches are equal
   * parts of.
   */
  pictures?: PageArray[];
  /**
   * Those of the record that this one is compared with, where they are others; as many, or
   * none.
   */
  other_pictures?: PageArray[];
  /**
   * Where evidence was given.
   */
  evidence?: PageEvidence;
  /**
   * Where the model wrote the text itself.
   */
  generation?: PageGeneration;
  /**
   * Where the page was given some.
   */
  links?: PageLinks;
  /**
   * Further records by the name that the tray calls them, each with a header as if it had a page
   * of its own. The chunks of one are called beside/NAME/CHUNK.
   */
  beside?: Record<string, Page>;
}
/**
 * The model that the record is of.
 */
export interface PageModel {
  /**
   * Hub name or folder, or what the user called it.
   */
  name: string;
  /**
   * As in the configuration, such as bert; empty for bare arrays.
   */
  model_type: string;
}
/**
 * Layers that share their tokens: the only stack, or the encoder, the decoder,
 * cross-attention.
 */
export interface PageStack {
  /**
   * self, encoder, decoder, cross ...
   */
  name: string;
  heads: number;
  /**
   * The number of each head in the model; they differ from 0, 1, 2 ... where the page holds some
   * heads only.
   */
  head_numbers: number[];
  query: PageTokens;
  key: PageTokens;
  layers: PageLayer[];
  /**
   * Layers of the model without attention, or whose attention is not known; absent where there is
   * none.
   */
  absent?: PageAbsent[];
  /**
   * Axes layer, head, query, key: how often the even share a weight is, as mean over each block
   * of the matrix and part of the number of keys.
   */
  thumbs: PageArray;
  /**
   * What rows and columns of the thumbnails stand for; only of a long text.
   */
  sentences?: PageSentences;
  /**
   * Absent where the page was written before there were any.
   */
  kinds?: PageKinds;
  /**
   * Where the page is of a comparison.
   */
  moved?: PageMoved;
}
/**
 * The tokens of one side of a stack; every list has one entry for each token.
 */
export interface PageTokens {
  /**
   * As the tokenizer names them.
   */
  pieces: string[];
  /**
   * As a reader should see them: without the tokenizer's marks for spaces and continuation.
   */
  labels: string[];
  /**
   * True where the token continues the word of the token before.
   */
  continues: boolean[];
  /**
   * The whole words, in order, each of a token and those that continue it; absent where every
   * token is a word.
   */
  words?: string[];
  /**
   * True for [CLS], [SEP], <s> and their like.
   */
  special: boolean[];
  /**
   * 0 for the first text and 1 for the second of a pair.
   */
  segments: number[];
  /**
   * How many tokens the text has where each of these stands for a group of them.
   */
  count?: number;
  /**
   * The first token that the model wrote itself; all before it were given.
   */
  written?: number;
  /**
   * Row and column of each patch of a picture, from 1, as CSS's grid-area has it: ``2/5``; empty
   * for other tokens.
   */
  areas?: string[];
  /**
   * First and stop of the tokens in one picture, or in none; a third number is that of the
   * picture, from 1. Beside ``areas``.
   */
  runs?: number[][];
  /**
   * Rows and columns of the patches of each picture. Beside ``areas``.
   */
  grids?: number[][];
  /**
   * What part of a video each picture stands for, such as ``frames 2-3``; empty for others. Where
   * there is a video.
   */
  frames?: string[];
}
/**
 * One layer of a stack.
 */
export interface PageLayer {
  /**
   * Number of the layer in the model, from 0.
   */
  layer: number;
  /**
   * True where the layer is prepared when it is asked for: the chunk layer/STACK/LAYER then is
   * all of this as JSON, and row-QUANTITY/STACK/LAYER/QUERY what a query has with every key, axes
   * head, key, in single precision.
   */
  later?: boolean;
  /**
   * Of a layer that is prepared later: the quantities that it will have, beside weights.
   */
  has?: string[];
  /**
   * full, causal, sliding ...: what a query may look at.
   */
  kind: string;
  /**
   * Positions among the page's heads of those that were captured, where others were not: of these
   * everything is 0.
   */
  held?: number[];
  /**
   * Fewer than heads where heads share their keys and values.
   */
  kv_heads: number;
  /**
   * Axes run, bound: a query, its first visible key and the end; None where every key is visible
   * to all.
   */
  visible: PageArray | null;
  /**
   * Axes head, query, key; None where weights are recomputed from the scores.
   */
  weights: PageArray | null;
  /**
   * None where the record or the page has no queries and keys.
   */
  scores: PageScores | null;
  /**
   * Where positions turned queries and keys.
   */
  rotary?: PageRotary;
  /**
   * Largest absolute difference between a weight as this page has it and the exact one; over some
   * of the queries of a long text, and then ``checked`` says so.
   */
  error: number;
  /**
   * less where part of a row's mass went to a learned sink that is no token, or was not kept.
   */
  row_sums: "one" | "less";
  /**
   * Mean share of a row's weight that was cut before headscope saw it, where rows were cut.
   */
  not_kept?: number;
  /**
   * Axes head, key: the length of what each key's value adds to the output when it has all of a
   * head's weight. From it the page works out the quantity contribution: weight times value norm.
   */
  value_norms?: PageArray;
  /**
   * Further quantities of this layer by name; axes head, query, key, or query, key for all heads
   * together.
   */
  quantities?: Record<string, PageArray>;
}
/**
 * An array that travels as bytes, little-endian, in C order, gzipped.
 */
export interface PageArray {
  /**
   * Name of the chunk that holds the bytes.
   */
  chunk: string;
  /**
   * Axis names, outermost first, such as head, query, key.
   */
  axes: string[];
  shape: number[];
  dtype: "uint8" | "float16" | "float32" | "int32";
  /**
   * How a stored number b becomes a value: plain means b itself, sqrt means (b / 255) ** 2,
   * signed means c * |c| for c = (b - 128) / 127.
   */
  encoding: "plain" | "sqrt" | "signed";
  /**
   * What the value is then multiplied by; 1 where it is absent.
   */
  most?: number;
  /**
   * True where each entry of the outermost axis is a chunk of its own: CHUNK/0, CHUNK/1 ...
   */
  split?: boolean;
}
/**
 * All that scores and weights are recomputed from.
 *
 * ``weights = softmax(soft_cap(queries . keys * scale) + bias)`` over the visible keys and the
 * sink.
 */
export interface PageScores {
  /**
   * Axes head, query, feature; positions are applied.
   */
  queries: PageArray;
  /**
   * Axes kv_head, key, feature; positions are applied. Heads share them evenly, in order.
   */
  keys: PageArray;
  scale: number;
  /**
   * None for none; else scores become soft_cap * tanh(score / soft_cap) before the bias is
   * added.
   */
  soft_cap: number | null;
  /**
   * Axes head, query, key, or head, offset where only key - query counts: offset 0 is the last
   * query's first key. One head stands for all.
   */
  bias: PageArray | null;
  /**
   * For each head one more logit of the softmax that belongs to no token.
   */
  sinks: number[] | null;
  /**
   * Largest absolute difference between a weight recomputed from these arrays and the exact
   * one.
   */
  error: number;
}
/**
 * How positions turned the queries and keys of a layer.
 */
export interface PageRotary {
  /**
   * Radians by which one token turns each pair of features.
   */
  frequencies: number[];
  /**
   * neighbours where features 2i and 2i + 1 are a pair, halves where i and i + len(frequencies)
   * are.
   */
  style: "halves" | "neighbours";
  /**
   * The first feature that is turned; pairs are counted from it.
   */
  start: number;
}
/**
 * A layer of the model that has no attention to show.
 */
export interface PageAbsent {
  layer: number;
  /**
   * What it has instead of attention, or why its attention is missing.
   */
  why: string;
}
/**
 * The sentences of a long text, or of two: the first token of each, or of a few together.
 */
export interface PageSentences {
  query: number[];
  key: number[];
}
/**
 * The kind of each head on the shown text: a description of one text, not a label.
 */
export interface PageKinds {
  /**
   * All kinds; a head's ``kind`` is an index into them.
   */
  kinds: ("next" | "previous" | "same" | "own" | "near" | "broad" | "resting" | "none")[];
  /**
   * Names of the numbers of a head: its ten numbers, the positions and links that a sentence
   * names, kind and score.
   */
  columns: string[];
  /**
   * Axes layer, head, column; NaN where a number has no meaning.
   */
  values: PageArray;
  /**
   * True where a query sees no later key, so that the first token stands for special ones.
   */
  causal: boolean;
}
/**
 * How far heads are from what they are compared with; every list has a row for each layer of
 * the stack.
 */
export interface PageMoved {
  /**
   * What the values are, with their unit.
   */
  label: string;
  /**
   * The baseline that a value must exceed to count.
   */
  spread: string;
  /**
   * None for heads that do not exist, and for those that were changed on purpose.
   */
  values: (number | null)[][];
  /**
   * True where the value is no larger than the spread.
   */
  within: boolean[][];
  /**
   * True for heads that were changed on purpose.
   */
  changed: boolean[][];
}
/**
 * A quantity that the page can show in place of the weights.
 */
export interface PageQuantity {
  name: string;
  label: string;
  /**
   * What it is, in one sentence.
   */
  explanation: string;
  /**
   * False where it is never below 0.
   */
  signed: boolean;
  /**
   * layer where there is one map for all heads together.
   */
  per: "head" | "layer";
}
/**
 * What a page shows; all of it is there.
 */
export interface PageSelection {
  /**
   * View that is shown first: by default ``"overview"``; ``"head"`` where heads, tokens or a quantity are chosen, and ``"compare"`` where there is a tray or several heads.
   */
  view: "overview" | "head" | "matrix" | "text" | "neuron" | "compare";
  /**
   * Stack that is shown first, such as ``"cross"``; by default the first one.
   */
  stack: string;
  /**
   * Layer that is shown first; by default the first one.
   */
  layer: number;
  /**
   * Numbers in the model; None for all heads.
   */
  heads: number[] | null;
  /**
   * Pinned query tokens.
   */
  query: number[];
  /**
   * Pinned key tokens.
   */
  key: number[];
  /**
   * Whether several pinned tokens are shown by the ``"mean"`` (default) or the ``"sum"`` of what they have.
   */
  pinned: "mean" | "sum";
  /**
   * Join the pieces of a word: the sum over the word that is attended to, the mean over the word that looks.
   */
  words: boolean;
  /**
   * What is shown: ``"weight"`` (default), ``"score"`` for what goes into the softmax, ``"contribution"`` for weight times value norm, or another that the record has or ``quantities`` gives.
   */
  quantity: string;
  /**
   * For a sentence pair: ``"ab"`` for queries of the first text and keys of the second, and so on; by default ``"all"``.
   */
  filter: "all" | "aa" | "ab" | "ba" | "bb";
  /**
   * Hide special tokens such as [CLS] and [SEP].
   */
  hide_special: boolean;
  /**
   * Whether sinks, keys that take most of the attention, are kept (default); else they are excluded and the rest is renormalised.
   */
  sinks: boolean;
  /**
   * How the overview orders heads: by ``"layer"`` and number (default), by ``"kind"``, or by ``"sharpness"``, the largest weight of a row.
   */
  order: "layer" | "kind" | "sharpness";
  /**
   * Kind whose heads stand out in the overview, such as ``"next"``; by default all.
   */
  kind: ("next" | "previous" | "same" | "own" | "near" | "broad" | "resting" | "none") | null;
  /**
   * What colours a head that is too small for a matrix: ``"kind"`` (default), ``"sharpness"``, ``"special"`` ...
   */
  measure: "kind" | "sharpness" | "next" | "previous" | "itself" | "same" | "special" | "top" | "own" | "near" | "keys";
  /**
   * Tokens of the head view in two ``"columns"`` or two ``"rows"``; ``"auto"`` (default) takes rows for Chinese and Japanese.
   */
  layout: "auto" | "columns" | "rows";
  /**
   * How the overview draws heads: ``"matrices"`` (default), or ``"lines"`` in tiles of 80 pixels or more.
   */
  tiles: "matrices" | "lines";
  /**
   * Whether the text view shows what tokens ``"received"`` (default) or what they have ``"given"``.
   */
  direction: "received" | "given";
  /**
   * View neuron: ``"model"`` (default) as the model has them, ``"ranked"`` by what they add, ``"pairs"`` as rotary positions turn them, or ``"hidden"`` for lines between words.
   */
  neurons: "model" | "ranked" | "pairs" | "hidden";
  /**
   * View neuron: of the chosen pair, the ``"product"`` (default), the ``"query"`` or the ``"key"`` is enlarged with its numbers; ``"hidden"`` for no pair.
   */
  vector: "product" | "query" | "key" | "hidden";
  /**
   * Part of the matrix that is seen: its first query, its first key, and how many keys; by default all of it.
   */
  zoom: number[] | null;
  /**
   * Gold links: ``"dep->head"`` (default) for what dependents attend to, or ``"head->dep"``.
   */
  link_direction: "dep->head" | "head->dep";
  /**
   * Words of the list of gold links: ``"both"`` (default), ``"hits"`` or ``"misses"``.
   */
  link_words: "both" | "hits" | "misses";
  /**
   * Which record is shown where there are several: one of ``beside`` by its name, such as ``"b"``; by default the record itself.
   */
  shown_record: string;
  /**
   * Colours: ``"light"``, ``"dark"``, or ``"auto"`` (default) for what the reader's system says.
   */
  theme: "auto" | "light" | "dark";
  /**
   * Pictures that view compare shows side by side, six at most: layer and heads, and what is not as usual, such as ``2-0 view=matrix query=3``.
   */
  tray: string[];
}
/**
 * Evidence about the heads, measured over texts, of which the page shows at most one.
 */
export interface PageEvidence {
  /**
   * The stack whose heads were measured.
   */
  stack: string;
  /**
   * The model of those texts.
   */
  model: string;
  texts: number;
  /**
   * Median length of the texts; None where it is not known.
   */
  tokens: number | null;
  /**
   * Confidence level of the intervals.
   */
  confidence: number;
  /**
   * Chance of a false label that was accepted.
   */
  alpha: number;
  /**
   * For trying many heads and patterns.
   */
  correction: string;
  /**
   * Why nothing can be concluded; empty where nothing prevents it.
   */
  caution: string;
  patterns: PagePattern[];
  /**
   * Axes pattern, layer, head: 0 for no label, 1 for a candidate, on one or too few texts, 2 for
   * one that holds.
   */
  status: PageArray;
  /**
   * Axes number, pattern, layer, head: score, low, high, baseline, effect, corrected p, texts;
   * NaN where unknown.
   */
  numbers: PageArray;
  measures: PageMeasure[];
  /**
   * Axes measure, layer, head: means over texts; NaN where unknown.
   */
  values: PageArray;
  /**
   * Texts, cut where they are long.
   */
  examples: string[];
  /**
   * For the labels that are shown.
   */
  shown: PageShown[];
}
/**
 * Something that a head may do, with what its evidence was measured against.
 */
export interface PagePattern {
  name: string;
  /**
   * What the head does, in a few words.
   */
  says: string;
  source: string;
  /**
   * Least mean score of a label.
   */
  threshold: number;
  /**
   * The baselines, between commas.
   */
  against: string;
}
/**
 * A number of each head.
 */
export interface PageMeasure {
  name: string;
  says: string;
  /**
   * Empty for shares from 0 to 1.
   */
  unit: string;
}
/**
 * What to look at for one label of one head.
 */
export interface PageShown {
  /**
   * Index into the patterns.
   */
  pattern: number;
  layer: number;
  head: number;
  /**
   * Indices into the examples: the texts with the highest scores, best first.
   */
  texts: number[];
  /**
   * The score of each of them.
   */
  scores: number[];
  /**
   * Strongest first; none where the pattern is not one of single pairs.
   */
  pairs: PagePair[];
}
/**
 * A query and a key of the shown text that show a label.
 */
export interface PagePair {
  query: number;
  key: number;
  weight: number;
}
/**
 * How the model wrote the text itself; every list has one entry for each token written.
 *
 * Probabilities are of the model's own distribution, before temperature, top-p or anything else
 * changed it. The model never read the last token, so it has no query and no key.
 */
export interface PageGeneration {
  /**
   * Whose query tokens were written.
   */
  stack: string;
  /**
   * How many of these were given; token ``t`` was chosen by query ``prompt + t - 1``.
   */
  prompt: number;
  labels: string[];
  probabilities: number[];
  /**
   * In nats.
   */
  entropies: number[];
  /**
   * 1 is the most probable.
   */
  ranks: number[];
  /**
   * The most probable candidates, in order; none where they were not kept.
   */
  alternatives: PageCandidate[][];
}
/**
 * A token that the model might have written.
 */
export interface PageCandidate {
  label: string;
  probability: number;
}
/**
 * Gold links between words of the shown text: a dependency tree, or another annotation.
 */
export interface PageLinks {
  /**
   * The stack whose tokens the words are made of; its queries and keys are the same.
   */
  stack: string;
  /**
   * Name of the sentence; empty where there is none.
   */
  name: string;
  /**
   * True where every word but the root has one head.
   */
  tree: boolean;
  words: PageWord[];
  arcs: PageArc[];
}
/**
 * A word of the shown text; it has gold links, or could have been chosen instead.
 */
export interface PageWord {
  label: string;
  /**
   * Positions of its tokens in the stack.
   */
  tokens: number[];
}
/**
 * A gold link.
 */
export interface PageArc {
  /**
   * Index into the words.
   */
  dependent: number;
  /**
   * Index into the words.
   */
  head: number;
  /**
   * Such as a relation.
   */
  label: string;
}
