import type { Page } from "../contract/page";
import { findStack, type Selection } from "./selection";

/**
 * A selection of one record as it is in another of an edited text: pins follow their tokens.
 *
 * What stands before the edit keeps its place, what stands after it moves with the end, and what was edited is let go.
 */
export function movedPins(selection: Selection, before: Page, after: Page): Selection {
  const [old, next] = [findStack(before, selection.stack), findStack(after, selection.stack)];
  return {
    ...selection,
    query: selection.query.flatMap(follower(old.query.pieces, next.query.pieces)),
    key: selection.key.flatMap(follower(old.key.pieces, next.key.pieces)),
  };
}

/** Where a token of a text is in the edited text: one place, or none. */
export function follower(before: readonly string[], after: readonly string[]): (token: number) => number[] {
  const shorter = Math.min(before.length, after.length);
  let kept = 0;
  while (kept < shorter && before[kept] === after[kept]) kept++;
  const shift = after.length - before.length;
  let end = before.length;
  while (end > kept && end + shift > kept && before[end - 1] === after[end + shift - 1]) end--;
  return (token) => {
    if (token < kept) return [token];
    return token >= end && token < before.length ? [token + shift] : [];
  };
}
