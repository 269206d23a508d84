import type { PageStack } from "../../types/page";
import type { Side } from "../draw/tokens";
import { liftOf } from "../draw/values";
import { toByte, WEIGHT } from "../draw/weights";
import type { PairTile } from "./byLayer";
import { WEIGHT_FACTS } from "./quantity";
import type { Store } from "./store";
import { readable, times } from "./words";

// Long texts sentence by sentence: each row and each column of a small picture of a head is one.

/** Of a long sentence so many queries are read, evenly spaced. */
const MOST_QUERIES = 48;

/** First token and end of a sentence. */
export function boundsOf({ sentences, ...stack }: PageStack, side: Side, sentence: number): [number, number] {
  const starts = sentences?.[side] ?? [];
  return [starts[sentence], starts[sentence + 1] ?? stack[side].labels.length];
}

/** The sentence that a token is in. */
export function sentenceAt({ sentences }: PageStack, side: Side, token: number): number {
  const after = sentences?.[side].findIndex((start) => start > token) ?? -1;
  return (after < 0 ? (sentences?.[side].length ?? 1) : after) - 1;
}

/** How a sentence begins. */
export function sentenceName(stack: PageStack, side: Side, sentence: number, length = 40): string {
  const [first, end] = boundsOf(stack, side, sentence);
  const { labels, continues } = stack[side];
  let text = "";
  for (let token = first; token < end && text.length < 2 * length; token++)
    text += `${continues[token] || token === first ? "" : " "}${labels[token]}`;
  return readable(text.replace(/\s+/g, " ").trim(), length).text;
}

/** How often the even share each sentence gets of one in a head; null while that is not here. */
export function liftsOfSentence({ thumbs, full }: Store, sentence: number): Float32Array | null {
  const known = thumbs.value;
  if (!known || full.value >= known.heads || sentence >= known.queries) return null;
  // The even share is rounded as all bytes are.
  const even = known.of * WEIGHT[toByte(1 / known.of)];
  return known.row(full.value, sentence).map((lift) => lift / even);
}

/** The sentence that is read: the pinned one, or else the one that looks furthest beyond its neighbours. */
export function chosenSentence(store: Store): number {
  const stack = store.stack.value;
  const [pinned] = store.pins.value.query;
  if (pinned !== undefined) return sentenceAt(stack, "query", pinned);
  const count = stack.sentences?.query.length ?? 0;
  let [found, most] = [count - 1, 0];
  for (let sentence = 2; sentence < count; sentence++) {
    liftsOfSentence(store, sentence)?.forEach((lift, key) => {
      if (lift > most && Math.abs(key - sentence) > 1) [found, most] = [sentence, lift];
    });
  }
  return found;
}

/** Reads a sentence; of two the second is what it is looked at with. */
export function chooseSentence(store: Store, query: number, key: number | null = null): void {
  const { sentences } = store.stack.value;
  store.choose({ query: [sentences?.query[query] ?? 0], key: key === null ? [] : [sentences?.key[key] ?? 0] });
}

/** How often the even share each token gets of a sentence: the mean over its tokens. */
export function liftsOfTokens(store: Store, sentence: number): Float32Array | null {
  const [stack, values, even] = [store.stack.value, store.values.value, store.even.value];
  if (stack.key.count !== undefined) return spread(store, sentence);
  if (!values || !even || store.shownStack.value !== stack) return null;
  const [first, end] = boundsOf(stack, "query", sentence);
  const step = Math.max(1, Math.ceil((end - first) / MOST_QUERIES));
  const [sums, seen] = [new Float32Array(values.keys), new Uint16Array(values.keys)];
  for (let query = first; query < end; query += step) {
    const [row, shares] = [values.row(store.map.value, query), even.row(0, query)];
    for (let key = 0; key < sums.length; key++) {
      if (shares[key] === 0) continue;
      sums[key] += liftOf(row[key], shares[key]);
      seen[key]++;
    }
  }
  return sums.map((sum, key) => (seen[key] ? sum / seen[key] : 0));
}

/** The same where tokens stand for sentences themselves. */
function spread(store: Store, sentence: number): Float32Array | null {
  const { key } = store.stack.value;
  const lifts = liftsOfSentence(store, sentence);
  return lifts && Float32Array.from(key.labels, (_, token) => lifts[sentenceAt(store.stack.value, "key", token)]);
}

/** What every head has between two sentences. */
export function sentenceTile(store: Store, pair: Readonly<Record<Side, number>>): PairTile | null {
  const [stack, thumbs] = [store.stack.value, store.thumbs.value];
  if (!thumbs) return null;
  const [query, key] = [sentenceAt(stack, "query", pair.query), sentenceAt(stack, "key", pair.key)];
  const values = stack.layers.map((_, row) =>
    stack.head_numbers.map((_, head) => thumbs.row(row * stack.heads + head, query)[key]),
  );
  const evens = stack.layers.map(() => 1);
  return { stack, quantity: WEIGHT_FACTS, values, evens, most: 1, text: times };
}
