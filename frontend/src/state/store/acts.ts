import { batch } from "@preact/signals-core";
import type { Place, Side } from "../../draw/columns";
import { fitSelection, isStep, leaving, releasePins, type Selection, togglePin } from "../selection";
import type { Chosen, Hover } from "./chosen";
import type { Opened } from "./opened";
import type { TokenState } from "./tokens";

/** What was shown before, and what comes after a step back. */
export interface Steps {
  readonly past: Selection[];
  readonly ahead: Selection[];
}

/** What a reader does: chooses, goes back, pins, points and lets go. */
export function acts(chosen: Chosen, { pieceStack, wordsAt, pieceAt }: TokenState, { opening }: Opened, steps: Steps) {
  const { root, record, isRecord, page, selection, elsewhere, hover, peeked, help, searching, show: onBlack } = chosen;
  const { past, ahead } = steps;
  const show = (next: Selection) =>
    batch(() => {
      peeked.value = null;
      selection.value = next;
    });
  function select(change: (selection: Selection) => Selection): void {
    const before = selection.peek();
    const changed = change(before);
    const other = changed.shown_record !== record && isRecord(changed.shown_record);
    const kept = { ...leaving(before, changed, pieceStack.peek(), opening.peek()), shown_record: record };
    const next = other ? changed : fitSelection(kept, page.peek(), root.peek());
    if (isStep(before, next)) {
      past.push(before);
      ahead.length = 0;
    }
    if (other) elsewhere.value = next;
    else show(next);
  }
  return {
    select,
    /** Changes parts of the selection. */
    choose: (part: Partial<Selection>): void => select((now) => ({ ...now, ...part })),
    /** The selection before the last step, or after it again. */
    undo(forward: boolean): void {
      const [from, to] = forward ? [ahead, past] : [past, ahead];
      const next = from.pop();
      if (!next) return;
      to.push(selection.peek());
      if (next.shown_record !== record) elsewhere.value = next;
      else show(next);
    },
    /** Pins what is shown as a token, or releases it; to add, beside those that are pinned. */
    pin(place: Place, add = false): void {
      const first = (side: Side, pieces: readonly number[]) =>
        wordsAt(side, pieces).map((token) => pieceAt({ side, token }));
      select((now) =>
        togglePin(
          { ...now, query: first("query", now.query), key: first("key", now.key) },
          { ...place, token: pieceAt(place) },
          add,
        ),
      );
    },
    preview(at: Hover): void {
      const now = hover.peek();
      if (at.query !== now.query || at.key !== now.key) hover.value = at;
    },
    release(): void {
      batch(() => {
        hover.value = {};
        if (onBlack.value) onBlack.value = null;
        else if (help.value) help.value = false;
        else if (searching.value) searching.value = false;
        else select((now) => ({ ...releasePins(now), kind: null }));
      });
    },
  };
}
