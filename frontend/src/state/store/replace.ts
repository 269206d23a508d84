import { batch, effect, type Signal } from "@preact/signals-core";
import type { Page } from "../../contract/page";
import type { Evidence } from "../../source/evidence";
import type { Source } from "../../source/source";
import { fitSelection, type Selection } from "../selection";
import { createStore, type Store } from "../store";

type Move = (selection: Selection) => Selection;

/** The replacement of each store that is under way. */
const running = new WeakMap<Store, AbortController>();

/**
 * Shows another record in place of the one that is shown, in one step.
 *
 * All that the shown view needs is loaded first, in a state of its own, while the old record stays; a picture is never
 * half of one record and half of another.
 *
 * @param move - the selection as it is to be in the new record, such as with pins that follow their tokens.
 * @param also - what else changes in the same step.
 * @returns whether it was shown: false where a newer replacement came first.
 * @throws where something of the new record cannot be loaded; the old one stays.
 */
export async function replaceRecord(
  store: Store,
  next: Source,
  move: Move = (now) => now,
  also: () => void = () => undefined,
): Promise<boolean> {
  running.get(store)?.abort();
  const mine = new AbortController();
  running.set(store, mine);
  const loading = createStore(next, move(store.selection.peek()));
  try {
    for (let aim = aimOf(store); ; aim = aimOf(store)) {
      loading.peeked.value = aim.peeked;
      selectionOf(loading).value = fitSelection(move(aim.selection), next.header);
      await settled(loading, mine.signal);
      if (mine.signal.aborted) return false;
      // The reader may have chosen another layer meanwhile.
      if (isSame(aim, aimOf(store))) break;
    }
    batch(() => {
      takeOver(store, loading, move);
      also();
    });
    // What was asked for once more by that is here already.
    store.waiting.value = "";
    return true;
  } catch (error) {
    if (mine.signal.aborted) return false;
    throw error;
  } finally {
    loading.destroy();
  }
}

/** What is looked at. */
interface Aim {
  readonly selection: Selection;
  readonly peeked: number | null;
}

function aimOf({ selection, peeked }: Store): Aim {
  return { selection: selection.peek(), peeked: peeked.peek() };
}

function isSame(one: Aim, other: Aim): boolean {
  return one.selection === other.selection && one.peeked === other.peeked;
}

/** The selection, to be set without a step of its own to go back by. */
function selectionOf({ selection }: Store): Signal<Selection> {
  return selection as Signal<Selection>;
}

/** Waits until all that is shown of a record is here, or nobody wants it any more. */
function settled(store: Store, signal: AbortSignal): Promise<void> {
  const noPictures = store.besides.pictures.peek();
  return new Promise((resolve, reject) => {
    const stop = effect(() => {
      const failure = store.failure.value;
      const done = isComplete(store) && (!store.page.pictures?.length || store.besides.pictures.value !== noPictures);
      if (!done && failure === null && !signal.aborted) return;
      // An effect cannot be ended before it has begun.
      queueMicrotask(() => stop());
      if (failure === null) resolve();
      else reject(failure);
    });
    signal.addEventListener("abort", () => {
      stop();
      resolve();
    });
  });
}

function isComplete({ page, shown, waiting, ofPieces, pieceStack, view, kinds, besides }: Store): boolean {
  const here = shown.value !== null && waiting.value === "" && ofPieces.value?.left === 0;
  const withKinds = view.value === "overview" && pieceStack.value.kinds;
  return here && (!withKinds || kinds.value?.left === 0) && (!page.evidence || besides.evidence.value !== null);
}

/** Puts all that was loaded into the store. */
function takeOver(store: Store, loaded: Store, move: Move): void {
  const { page } = loaded;
  store.origin.value = loaded.origin.peek();
  selectionOf(store).value = loaded.selection.peek();
  store.loaded.value = loaded.loaded.peek();
  store.ofPieces.value = loaded.ofPieces.peek();
  store.loadedKinds.value = loaded.loadedKinds.peek();
  store.besides.pictures.value = loaded.besides.pictures.peek();
  store.besides.evidence.value = loaded.besides.evidence.peek() ?? carried(store.besides.evidence.peek(), page);
  store.failure.value = null;
  // Tokens have other numbers now.
  store.hover.value = {};
  for (const steps of [store.steps.past, store.steps.ahead]) {
    steps.forEach((step, at) => {
      steps[at] = fitSelection(move(step), page);
    });
  }
}

/** Evidence is of the model and not of the text: it stays where the new record comes without. */
function carried(evidence: Evidence | null, { stacks }: Page): Evidence | null {
  const stack = stacks.find(({ name }) => name === evidence?.stack.name);
  const fits = stack && stack.heads === evidence?.stack.heads && stack.layers.length === evidence.stack.layers.length;
  return evidence && fits ? { ...evidence, stack } : null;
}
