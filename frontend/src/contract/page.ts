// Generated from page.schema.json by `npm run contract`; change src/headscope/views/_contract.py instead.

/**
 * The header of a page: everything but the bytes of the arrays.
 */
export interface Page {
  format: 1;
  /**
   * Version of headscope that wrote the page.
   */
  headscope: string;
  title: string;
  model: PageModel;
  /**
   * Largest difference between the recomputed and the model's own layer output; None for bare arrays.
   */
  verified: number | null;
  stacks: PageStack[];
  selection: PageSelection;
}
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
 * Layers that share their tokens: the only stack, or the encoder, the decoder, cross-attention.
 */
export interface PageStack {
  /**
   * self, encoder, decoder, cross ...
   */
  name: string;
  heads: number;
  query: PageTokens;
  key: PageTokens;
  layers: PageLayer[];
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
   * True for [CLS], [SEP], <s> and their like.
   */
  special: boolean[];
  /**
   * 0 for the first text and 1 for the second of a pair.
   */
  segments: number[];
}
export interface PageLayer {
  /**
   * Number of the layer in the model, from 0.
   */
  layer: number;
  /**
   * full, causal, sliding ...: what a query may look at.
   */
  kind: string;
  weights: PageArray;
  /**
   * less where part of a row's mass went to a learned sink that is no token.
   */
  row_sums: "one" | "less";
}
/**
 * Axes head, query, key.
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
  dtype: "uint8";
  /**
   * How a stored byte b becomes a value: sqrt means (b / 255) ** 2.
   */
  encoding: "sqrt";
  /**
   * Largest absolute difference between a decoded and the exact value in this very array.
   */
  error: number;
}
/**
 * What the page shows when it opens.
 */
export interface PageSelection {
  stack: string;
  layer: number;
  /**
   * None for all heads.
   */
  heads: number[] | null;
  theme: "auto" | "light" | "dark";
}
