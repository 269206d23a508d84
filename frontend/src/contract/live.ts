// Generated from live.schema.json by `npm run contract`; change src/headscope/live/contract.py instead.

import type {AnswerPicture} from "./answer";
import type {Page, PageMoved} from "./page";

/**
 * ``GET /model.json``: what the model is, and what can be asked of it.
 */
export interface LiveFacts {
  name: string;
  device: string;
  dtype: string;
  /**
   * Commit of the hub repository; empty where it is not known.
   */
  revision: string;
  /**
   * How it computes attention: sdpa, eager ...
   */
  implementation: string;
  kind: "next-token" | "masked" | "classes" | "target" | "none";
  /**
   * Why its guesses say nothing and are hidden: the head that makes them was not trained; else
   * empty.
   */
  untrained: string;
  /**
   * What an input may have.
   */
  fields: ("text" | "text_b" | "target" | "image" | "audio" | "messages")[];
  limits: LiveLimits;
  /**
   * None before a first text was read.
   */
  stacks: LiveStack[];
  /**
   * Whether it has a form for messages.
   */
  chat: boolean;
  /**
   * Whether it can continue a text: ``POST /write``.
   */
  writes: boolean;
  /**
   * Whether it can be asked what each layer would say: ``POST /lens``.
   */
  lens: boolean;
  /**
   * How it can be asked what matters: ``POST /matters``.
   */
  matters: ("gradient" | "exact")[];
  /**
   * The token that stands for a hidden word; empty where there is none.
   */
  mask: string;
  /**
   * What stands in a text where a picture belongs, put before a text that has none; empty
   * where texts have no place for one.
   */
  picture_mark: string;
  /**
   * Samples a second of a sound that it hears; 0 where it hears none.
   */
  sampling_rate: number;
  /**
   * True as long as the model is being loaded: all else is empty then.
   */
  loading: boolean;
  /**
   * Why it could not be loaded; else empty.
   */
  failed: string;
  /**
   * Of torch.
   */
  threads: number;
  /**
   * The text that the server was started with; empty without one.
   */
  text: string;
  /**
   * The conversation that it was started with; empty without one.
   */
  messages: LiveMessage[];
  /**
   * Name of the second model, which the first can be compared with; empty without one.
   */
  beside: string;
  /**
   * Number of texts of the atlas that drawings can be compared with; 0 without one.
   */
  atlas: number;
  /**
   * Of headscope, torch and transformers.
   */
  versions: Record<string, string>;
}
/**
 * What a request may ask for at most.
 */
export interface LiveLimits {
  /**
   * Of a text; memory grows with their square.
   */
  tokens: number;
  /**
   * That a request may run.
   */
  seconds: number;
  /**
   * Of a text.
   */
  characters: number;
  changes: number;
  /**
   * Pages that may wait for the model; one more is asked to come again (503).
   */
  queue: number;
  /**
   * Of a picture or sound, before it is written as text.
   */
  picture_bytes: number;
}
/**
 * Layers and heads of one stack of the model.
 */
export interface LiveStack {
  name: string;
  /**
   * The numbers of its layers with attention.
   */
  layers: number[];
  /**
   * The most that one of them has.
   */
  heads: number;
}
/**
 * One turn of a conversation, for a model that has a form for them.
 */
export interface LiveMessage {
  role: string;
  content: string;
}
/**
 * ``POST /ask``: read this, with these changes.
 */
export interface LiveQuestion {
  /**
   * A random name of the tab: of each page only the newest question is answered.
   */
  page: string;
  input: LiveInput;
  changes: ModelChange[];
  looking: LiveLooking;
  /**
   * Ask the second model.
   */
  second?: boolean;
}
/**
 * What the model reads.
 */
export interface LiveInput {
  text?: string;
  /**
   * The second text of a pair.
   */
  text_b?: string;
  /**
   * What the decoder of an encoder-decoder reads; by default what it writes itself.
   */
  target?: string;
  /**
   * In place of a text.
   */
  messages?: LiveMessage[];
  /**
   * The bytes of a PNG or JPEG in base64.
   */
  image?: string;
  /**
   * The bytes of a WAV in base64, of as many samples a second as the model hears.
   */
  audio?: string;
}
/**
 * A change of some heads. ``from`` is the other text that patch takes values from, or several
 * texts, a line each, that mean takes the mean over.
 */
export interface ModelChange {
  from?: string;
  /**
   * zero: the heads hand on nothing; uniform: they look at all alike; mean: as they do on average
   * over other texts; cut: links carry nothing; patch: they hand on what they do on another text.
   */
  do: "zero" | "uniform" | "mean" | "cut" | "patch";
  layer: number;
  /**
   * All where it is absent.
   */
  heads?: number[];
  /**
   * May be left out where the model has only one.
   */
  stack?: string;
  /**
   * Positions of the tokens that look; of patch those that are patched. All where absent.
   */
  queries?: number[];
  /**
   * Of cut: positions of the tokens that are looked at.
   */
  keys?: number[];
}
/**
 * What the page shows, so that the answer holds what it draws first.
 */
export interface LiveLooking {
  stack?: string;
  layer?: number;
  /**
   * All where absent.
   */
  heads?: number[];
  view?: string;
  quantity?: string;
}
/**
 * ``POST /compare``: two records beside each other, token by token and head by head.
 */
export interface CompareQuestion {
  page: string;
  /**
   * Id of the first record.
   */
  a: string;
  /**
   * Id of the second: of another text, or of the second model.
   */
  b: string;
  looking: LiveLooking;
}
/**
 * The head of an answer in bytes: its length as four bytes, little-endian, then this as JSON,
 * then the bytes of its chunks, one after the other.
 */
export interface LiveOpening {
  /**
   * Of the record; empty of a record that was opened from a file.
   */
  id: string;
  header: Page;
  output: LiveOutput | null;
  /**
   * As the server understood them.
   */
  changes: ModelChange[];
  /**
   * The same as it stands in an address: zero:2-0,3;cut:5-1q4k0.
   */
  address: string;
  /**
   * The same as a line of Python.
   */
  python: string;
  /**
   * What took how long, in milliseconds.
   */
  timings: Record<string, number>;
  /**
   * Name and number of bytes of each chunk, in order.
   */
  chunks: [string, number][];
  /**
   * Of two models whose heads are not matched by number, by stack of the first: layer and head of
   * each of its heads, and of that of the second which is compared with it.
   */
  partners?: Record<string, [number, number, number, number][]>;
}
/**
 * What the model says.
 */
export interface LiveOutput {
  kind: "next-token" | "masked" | "classes" | "target" | "none";
  /**
   * Whose query tokens the places are; empty where they are of the whole.
   */
  stack: string;
  places: LivePlace[];
  /**
   * With changes: how far each head moved, by stack; the same as in the header.
   */
  moved?: Record<string, PageMoved>;
  /**
   * What is to be known of all this, in words.
   */
  note: string;
}
/**
 * What the model says at one place of what it reads.
 */
export interface LivePlace {
  /**
   * The query token; -1 where it concerns the whole.
   */
  at: number;
  /**
   * As a reader sees it.
   */
  token: string;
  /**
   * The five likeliest, of the model as it is; none where it does not guess.
   */
  before: LiveGuess[];
  /**
   * The same under the changes.
   */
  after?: LiveGuess[];
  /**
   * How far the changes moved it: KL(before || after) in nats; of a model that does not guess the
   * cosine distance of its states.
   */
  kl?: number;
}
/**
 * A token or class that the model holds possible.
 */
export interface LiveGuess {
  /**
   * Its number in the vocabulary, or of the class.
   */
  id: number;
  label: string;
  /**
   * True where the token continues the word before it.
   */
  continues: boolean;
  probability: number;
}
/**
 * ``POST /write``: continue this text. The answer is a line of JSON for each token.
 */
export interface WriteQuestion {
  page: string;
  input: LiveInput;
  changes: ModelChange[];
  /**
   * How many to write at most.
   */
  tokens: number;
  /**
   * Keep this many tokens of the text (special ones count) and let the rest go.
   */
  at?: number;
  /**
   * The number of the token that comes next: to go on from an alternative.
   */
  choice?: number;
  /**
   * Also what each layer would have predicted (logit lens).
   */
  lens?: boolean;
}
/**
 * A token that was written.
 */
export interface WrittenToken {
  token: string;
  /**
   * True where it continues the word before it.
   */
  continues: boolean;
  id: number;
  probability: number;
  /**
   * In nats.
   */
  entropy: number;
  /**
   * The most probable, the written one among them.
   */
  alternatives: LiveGuess[];
  lens?: LensLayer[];
}
/**
 * What the model would say were it to end after this layer.
 */
export interface LensLayer {
  layer: number;
  predictions: LiveGuess[];
}
/**
 * The last line: the record of all that was read and written.
 */
export interface WriteEnd {
  id: string;
  /**
   * Prompt and what was written.
   */
  text: string;
  /**
   * Whether the model ended the text, or it is as long as was asked for.
   */
  stopped: "end" | "length";
}
/**
 * Why something was not done; with the status 400, 403, 409, 410, 413, 415 or 503.
 */
export interface LiveError {
  error: string;
}
/**
 * ``POST /lens``: what each layer would say at a place of the text.
 */
export interface LensQuestion {
  page: string;
  input: LiveInput;
  changes: ModelChange[];
  /**
   * A place of the output, by its ``at``.
   */
  at: number;
}
/**
 * What each layer would say, the lowest first.
 */
export interface LensAnswer {
  at: number;
  layers: LensLayer[];
}
/**
 * ``POST /answer``: answer the text, or the conversation, and its picture where it has one.
 * What comes is a line of JSON for each token, and then `AnswerEnd`; where only other heads are
 * asked for, the end alone.
 */
export interface AnswerQuestion {
  page: string;
  input: LiveInput;
  changes: ModelChange[];
  /**
   * How many to write at most.
   */
  tokens: number;
  /**
   * That the attention is the mean over; all where absent.
   */
  layers?: number[];
  /**
   * Layer and head of each that it is the mean over, in place of layers.
   */
  heads?: [number, number][];
  /**
   * Whether patches stay that get outsized attention from most words.
   */
  keep_sinks?: boolean;
}
/**
 * The last line: the record of question and answer, and what each word looked at.
 */
export interface AnswerEnd {
  id: string;
  question: string;
  /**
   * The answer.
   */
  text: string;
  /**
   * What each word looked at, and needed.
   */
  picture: AnswerPicture;
}
/**
 * ``POST /matters``: which heads matter to a guess. The answer is lines of JSON.
 */
export interface MattersQuestion {
  page: string;
  input: LiveInput;
  changes: ModelChange[];
  target: MattersTarget;
  /**
   * gradient: one pass forward and back (Michel et al. 2019, equation 2), which gives no sign.
   * exact: each head is zeroed in turn.
   */
  method: "gradient" | "exact";
}
/**
 * The guess of which is asked what matters to it.
 */
export interface MattersTarget {
  /**
   * A place of the output, by its ``at``; the last one where absent.
   */
  at?: number;
  /**
   * The number of the guess; the likeliest where absent.
   */
  id?: number;
}
/**
 * How far it got.
 */
export interface MattersDone {
  done: number;
  of: number;
}
/**
 * What matters, for one stack; the last lines.
 */
export interface MattersValues {
  stack: string;
  /**
   * Layer, head and effect: by how much the negative log probability of the guess, in nats, rises
   * without the head; of gradient its size alone. Of a model that does not guess: the cosine
   * distance of its states.
   */
  values: [number, number, number][];
  /**
   * What the effects are, in words.
   */
  label: string;
}
/**
 * ``POST /sketch``: which heads look like this on the text of a record.
 */
export interface SketchQuestion {
  page: string;
  id: string;
  stack: string;
  /**
   * What was drawn, rows of queries and columns of keys, from 0 to 1; of any size, laid over the
   * map.
   */
  matrix: number[][];
}
/**
 * Heads, the likest first.
 */
export interface SketchAnswer {
  heads: SketchedHead[];
}
/**
 * A head and how much it looks like the drawing.
 */
export interface SketchedHead {
  layer: number;
  head: number;
  /**
   * Cosine of drawing and weights, 0 to 1.
   */
  likeness: number;
}
/**
 * ``GET /atlas.json``: the mean attention of every head over the texts of an atlas, which the
 * page compares with a drawing.
 */
export interface LiveAtlas {
  texts: number;
  /**
   * Whose heads these are.
   */
  stack: string;
  /**
   * Rows and columns of each map are so many of the first tokens of a text, and so many of the
   * last.
   */
  side: number;
  /**
   * Layer and number of each head.
   */
  heads: [number, number][];
  /**
   * The maps one after the other, a byte for the root of each mean weight, in base64.
   */
  mean_maps: string;
}
