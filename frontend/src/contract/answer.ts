// Generated from answer.schema.json by `npm run contract`; change src/headscope/views/answer_contract.py instead.

/**
 * All that the page of an answer draws. Arrays are base64 of their bytes, little-endian.
 */
export interface AnswerPicture {
  title: string;
  /**
   * auto, light or dark.
   */
  theme: string;
  model: string;
  facts: string;
  question: string;
  /**
   * Sentences: what it needed first, then what it looked at.
   */
  says: string[];
  /**
   * What shares are of: attention, norms of contributions, or ALTI.
   */
  quantity: string;
  /**
   * The heads that shares are the mean of, in words.
   */
  mean: string;
  /**
   * The verdict: none, parts, any, several, or empty.
   */
  needs: string;
  /**
   * Parts that it names.
   */
  needed: number[];
  /**
   * The part that heads are ranked by, or -1.
   */
  target: number;
  words: string[];
  /**
   * Text of each token of the prompt, with what stands before it.
   */
  pieces: string[];
  parts: AnswerPart[];
  /**
   * Parts that are compared and cut.
   */
  candidates: number[];
  /**
   * Heads that have a tile: layer-head.
   */
  heads: string[];
  /**
   * The kind of each of them on this text.
   */
  kinds: string[];
  /**
   * Heads of a layer where all of them have a tile; 0 where they are ranked.
   */
  columns: number;
  /**
   * float32, mean over heads and then of each head: head, word, part; behind the parts the first
   * token, the template and the answer itself.
   */
  shares: string;
  /**
   * float32: word, part. The share were each row even over the tokens it sees.
   */
  even_shares: string;
  /**
   * float32, logarithms of probabilities: case, word. Cases: whole, with all candidates cut off,
   * without each candidate, with each of them alone.
   */
  logs: string;
  /**
   * uint8: head, word, token; 255 times the root of the share of the most. First the mean.
   */
  ink: string;
  /**
   * float32: head, word. The most attention that a token gets.
   */
  tops: string;
  /**
   * float32: part, part; times an even share, rows look at columns; the answer comes last. Empty
   * where it is not known.
   */
  between: string;
  pictures: AnswerShown[];
  /**
   * Tokens of patches that are left out of heat.
   */
  sinks: number[];
  /**
   * Tables and notes as HTML, every text in it escaped.
   */
  tables: string;
}
/**
 * A part of the prompt of an answer.
 */
export interface AnswerPart {
  name: string;
  kind: string;
  /**
   * How deep it is nested, 0 for the outermost.
   */
  level: number;
  /**
   * First and stop of its tokens, several where other tokens stand between them.
   */
  runs: number[][];
}
/**
 * A picture, or a frame of a video, that an answer is about.
 */
export interface AnswerShown {
  /**
   * Of its pixels, as data; empty where they are not known.
   */
  address: string;
  /**
   * Height and width of it.
   */
  size: number[];
  /**
   * Rows and columns of its patches.
   */
  grid: number[];
  /**
   * Tokens that are its patches.
   */
  keys: number[];
  /**
   * The cell of each of them, row by row.
   */
  places: number[];
}
