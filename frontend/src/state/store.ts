import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import { DEFAULTS, MOST_IN_TRAY } from "../../contract/values";
import type { Page } from "../../types/page";
import { contrastPatch } from "../draw/patches";
import { type Evidence, loadEvidence, loadPictures, NO_PICTURES, type Pictures, type Thumbs } from "../source/heads";
import type { LayerCache } from "../source/layers";
import type { Source } from "../source/source";
import { clearestOfEach } from "./kinds";
import { quantitiesOf } from "./quantity";
import { fitSelection, isDrawing, keepHead, ofEveryRecord, type Selection, type View, writeEntry } from "./selection";
import { acts, type Chosen, chosenState, type Steps, tokenState } from "./store/chosen";
import { openedState, patchState, thumbnailState } from "./store/heads";
import { asking, loadingState } from "./store/loading";
import { attentionState, looksState, weightState } from "./store/weights";

export type { Hover } from "./store/chosen";
export type { Shown } from "./store/loading";

/** The state of all views: what is selected, and all that follows from it. */
export type Store = ReturnType<typeof createStore>;

/**
 * The state of what is shown.
 *
 * A picture of the tray has one of its own, and shares the layers that were unpacked; it needs no more than its picture.
 */
export function createStore(
  given: Source,
  wanted: Partial<Selection> = {},
  shared?: LayerCache,
  steps: Steps = { past: [], ahead: [] },
) {
  const chosen = chosenState(given, wanted, shared);
  const { page, root, origin, selection, elsewhere } = chosen;
  const tokens = tokenState(chosen);
  const besides = besideState(chosen, shared !== undefined);
  const ofPieces = signal<Thumbs | null>(null);
  const opened = openedState(chosen, tokens, besides.evidence, ofPieces);
  const loading = loadingState(chosen, tokens, opened);
  const looks = looksState(chosen, tokens, opened, loading);
  const weights = weightState(chosen, loading, looks);
  const asks = asking(chosen, tokens);
  const thumbnails = thumbnailState(chosen, tokens, opened, {
    ...loading,
    ofPieces,
    without: shared !== undefined,
  });
  const pictures = computed(() => besides.pictures.value(looks.quantity.value.name));
  const patches = patchState({ ...tokens, ...weights, ...asks, pictures, fail: chosen.fail });
  return {
    ...chosen,
    selection: selection as ReadonlySignal<Selection>,
    elsewhere: elsewhere as ReadonlySignal<Selection | null>,
    ...tokens,
    ...opened,
    ...loading,
    ...looks,
    ...weights,
    ...attentionState(chosen, tokens, looks, weights),
    ...asks,
    ...thumbnails,
    ...acts(chosen, tokens, opened, steps),
    besides,
    steps,
    /** The page: read where it is drawn, as a model that answers replaces it. */
    get page() {
      return page.value;
    },
    /** The page itself, also where what is shown is a further record of it. */
    get root() {
      return root.value;
    },
    /** What is known of the heads of the chosen stack. */
    evidence: computed(() => {
      const known = besides.evidence.value;
      return known?.stack === tokens.pieceStack.value ? known : null;
    }),
    /** The pictures whose patches the tokens are, of each record that is shown. */
    pictures,
    patchRows: patches.patchRows,
    /** The quantities that the chosen stack has. */
    quantities: computed(() => quantitiesOf(page.value, tokens.pieceStack.value)),
    /** Asks Python for a figure, where there is a Python. */
    get figure() {
      return origin.value.source.figure;
    },
    destroy: () => [opened, loading, thumbnails, patches].forEach(({ stop }) => void stop()),
  };
}

/** What a page has beside layers: evidence, and pictures whose patches the tokens are. */
function besideState({ origin, page, fail }: Chosen, without: boolean) {
  const { source } = origin.peek();
  const evidence = signal<Evidence | null>(null);
  const pictures = signal<(quantity: string) => Pictures>(() => NO_PICTURES);
  if (!without) {
    loadEvidence(source, page.peek()).then((loaded) => (evidence.value = loaded), fail);
  }
  loadPictures(source).then((loaded) => (pictures.value = loaded), fail);
  return { evidence, pictures };
}

/** Puts the head that is shown into the tray, as it is drawn. */
export function freeze(store: Store): void {
  const { selection, stack, full, page, record, view } = store;
  const now = keepHead(selection.value, full.value, stack.value);
  addToTray(store, writeEntry(isDrawing(view.value) ? now : { ...now, view: "head" }, page, record));
}

/** Puts a line into the tray, of every record of the page, where there is room and it is not there yet. */
export function addToTray(store: Store, line: string): void {
  const { tray } = store.selection.value;
  const next = [...new Set([...tray, ...ofEveryRecord(line, store.root)])];
  if (next.length === tray.length) store.said.value = `${line} is in the tray already`;
  else if (next.length > MOST_IN_TRAY) store.said.value = `The tray is full: it holds ${MOST_IN_TRAY} pictures`;
  else {
    store.choose({ tray: next });
    store.said.value = `${line} added to compare, ${next.length} of ${MOST_IN_TRAY}`;
  }
}

/** The line of one head as its thumbnail is numbered, with nothing else chosen. */
export function headLine({ selection, stack, page, record }: Store, at: number): string {
  const { layer, heads } = keepHead(selection.value, at, stack.value);
  return writeEntry({ ...DEFAULTS, view: "head", stack: stack.value.name, layer, heads }, page, record);
}

/** Compares the kept heads, or the clearest of each kind. */
export function compareClearest(store: Store): void {
  const known = store.kinds.value;
  if (store.selection.value.tray.length > 0) store.choose({ view: "compare" });
  else if (known?.left === 0) {
    const tray = clearestOfEach(known).flatMap(({ head }) => ofEveryRecord(headLine(store, head), store.root));
    if (tray.length > 0) store.choose({ view: "compare", tray: tray.slice(0, MOST_IN_TRAY) });
  }
}

/** Opens a drawing of one head: a causal text on the token that predicts, a picture on the patch with most contrast. */
export function openDrawing(store: Store, view: View): void {
  const { selection, stack, pictures } = store;
  const { kinds, query: tokens } = stack.value;
  const free = view === "text" && selection.value.query.length + selection.value.key.length === 0;
  const last = kinds?.causal ? tokens.labels.length - 1 : null;
  const token = tokens.areas ? contrastPatch(tokens, pictures.value[0] ?? []) : last;
  store.choose({ view, ...(free && token !== null && { query: [store.pieceAt({ side: "query", token })] }) });
}

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
type Aim = ReturnType<typeof aimOf>;

function aimOf({ selection, peeked }: Store) {
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
      const { page, shown, waiting, ofPieces, pieceStack, view, kinds, besides } = store;
      const here = shown.value !== null && waiting.value === "" && ofPieces.value?.left === 0;
      const withKinds = view.value === "overview" && pieceStack.value.kinds;
      const known = (!withKinds || kinds.value?.left === 0) && (!page.evidence || besides.evidence.value !== null);
      const done = here && known && (!page.pictures?.length || besides.pictures.value !== noPictures);
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
