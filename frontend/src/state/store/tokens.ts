import { computed } from "@preact/signals-core";
import type { PageStack } from "../../contract/page";
import type { Place, Side } from "../../draw/columns";
import { mergedTokens, mergeOf } from "../../draw/merge";
import { thumbShape } from "../../draw/thumbs";
import { findStack } from "../selection";
import type { Chosen } from "./chosen";

/** The stack that is chosen, its tokens as they are shown, and the pinned ones. */
export type TokenState = ReturnType<typeof tokenState>;

/** The tokens of the chosen stack: pieces, or the words that they make. */
export function tokenState({ page, selection, part }: Chosen) {
  const [stackName, inWords] = [part("stack"), part("words")];
  /** The stack as the page has it, in pieces. */
  const pieceStack = computed(() => findStack(page.value, stackName.value));
  /** How pieces make words, where these are shown. */
  const merge = computed(() => {
    if (!inWords.value || !hasPieces(pieceStack.value)) return null;
    return { query: mergeOf(pieceStack.value.query), key: mergeOf(pieceStack.value.key) };
  });
  const wordsAt = (side: Side, pieces: readonly number[]): readonly number[] => {
    const of = merge.value?.[side];
    return of ? [...new Set(pieces.map((piece) => of.wordOf[piece]))] : pieces;
  };
  const pinsKey = computed(() => `${selection.value.query.join()}|${selection.value.key.join()}`);
  return {
    pieceStack,
    merge,
    wordsAt,
    /** The first piece of what is shown as a token. */
    pieceAt: ({ side, token }: Place): number => merge.peek()?.[side].starts[token] ?? token,
    pins: computed((): Record<Side, readonly number[]> => {
      void pinsKey.value;
      const { query, key } = selection.peek();
      return { query: wordsAt("query", query), key: wordsAt("key", key) };
    }),
    /** The stack as it is shown. */
    stack: computed((): PageStack => {
      const [of, { query, key, thumbs }] = [merge.value, pieceStack.value];
      if (!of) return pieceStack.value;
      const words = { query: mergedTokens(query, of.query), key: mergedTokens(key, of.key) };
      const { queries, keys } = thumbShape({ queries: words.query.labels.length, keys: words.key.labels.length });
      const shape = [...thumbs.shape.slice(0, 2), queries, keys];
      return { ...pieceStack.value, ...words, thumbs: { ...thumbs, shape } };
    }),
    /** Whether words of the chosen stack have several pieces. */
    hasPieces: computed(() => hasPieces(pieceStack.value)),
    /** Whether what is shown as tokens are words of several pieces. */
    merged: computed(() => merge.value !== null),
  };
}

/** Long texts are told by sentences, which are of pieces. */
function hasPieces({ query, key, sentences }: PageStack): boolean {
  if (sentences) return false;
  return query.continues.includes(true) || key.continues.includes(true);
}
