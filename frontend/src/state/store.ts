import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import { DEFAULTS, MOST_IN_TRAY } from "../contract/values";
import { contrastPatch } from "../draw/patches";
import { type Evidence, loadEvidence } from "../source/evidence";
import type { LayerCache } from "../source/layers";
import { loadPictures, NO_PICTURES, type Pictures } from "../source/pictures";
import type { Source } from "../source/source";
import type { Thumbs } from "../source/thumbs";
import { clearestOfEach } from "./kinds";
import { isDrawing } from "./places";
import { quantitiesOf } from "./quantity";
import { keepHead, type Selection, type View } from "./selection";
import { acts, type Steps } from "./store/acts";
import { attentionState } from "./store/attention";
import { type Chosen, chosenState } from "./store/chosen";
import { asking, loadingState } from "./store/loading";
import { looksState } from "./store/looks";
import { openedState } from "./store/opened";
import { patchState } from "./store/patches";
import { thumbnailState } from "./store/thumbnails";
import { tokenState } from "./store/tokens";
import { weightState } from "./store/weights";
import { ofEveryRecord, writeEntry } from "./tray";

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
  const thumbnails = thumbnailState(chosen, tokens, opened, asks, { ofPieces, without: shared !== undefined });
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
