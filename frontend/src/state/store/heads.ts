import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import type { PageStack, PageTokens } from "../../../types/page";
import { contrastPatch, isPicture, type Raster } from "../../draw/patches";
import type { LiftThumbs } from "../../draw/thumbs";
import { type LayerValues, liftOf, mergedValues } from "../../draw/values";
import { type Evidence, type LoadedKinds, loadKinds, loadThumbs, type Thumbs } from "../../source/heads";
import { kindsOverTexts } from "../evidence";
import { aligningHead, clearestHead } from "../kinds";
import { WEIGHT_FACTS } from "../quantity";
import { isOneText, keptHead } from "../selection";
import type { Chosen, TokenState } from "./chosen";
import type { asking, Loading } from "./loading";

/** Which layer and heads are looked at, and what each head does. */
export type Opened = ReturnType<typeof openedState>;

/** Milliseconds without a key after which a text is taken as written. */
const QUIET = 1000;

/** The layer and head that are shown: chosen, or the clearest. */
export function openedState(
  { selection, view, peeked, origin, fail }: Chosen,
  { pieceStack: stack }: TokenState,
  evidence: ReadonlySignal<Evidence | null>,
  ofPieces: ReadonlySignal<Thumbs | null>,
) {
  /** Of cross-attention the head that goes along the other text. */
  const aligned = computed(() => {
    const [{ key, ...of }, thumbs] = [stack.value, ofPieces.value];
    const known = thumbs?.stack === stack.value && thumbs.left === 0 && thumbs.lifts.keys === key.labels.length;
    return known && !key.areas && !isOneText({ key, ...of }) ? aligningHead(thumbs.lifts, key.special) : null;
  });
  const loadedKinds = signal<LoadedKinds | null>(null);
  /** Those of the text before, while a new one is being typed. */
  const held = signal<LoadedKinds | null>(null);
  let quiet: ReturnType<typeof setTimeout> | undefined;
  const over = computed(() => {
    const known = evidence.value;
    return known?.stack === stack.value && known.said.texts > 1 ? kindsOverTexts(known) : undefined;
  });
  const kinds = computed((): LoadedKinds | null => {
    const now = loadedKinds.value?.stack === stack.value ? loadedKinds.value : null;
    return held.value ?? (now && over.value ? { ...now, over: over.value } : now);
  });
  /** What a page opens on: the clearest head, or the first of the layer until that is known. */
  const opening = computed(() => {
    const row = stack.value.layers.findIndex(({ layer }) => layer === selection.value.layer);
    // A layer that was chosen without a head shows the clearest of its own.
    const inLayer = row > 0 || view.value !== "overview" ? row : null;
    const clearest = kinds.value?.left === 0 ? clearestHead(kinds.value, inLayer) : null;
    return (inLayer === null ? aligned.value : null) ?? clearest ?? row * stack.value.heads;
  });
  const full = computed((): number => {
    const pointed = view.value === "overview" ? peeked.value : null;
    return pointed ?? keptHead(selection.value, stack.value) ?? opening.value;
  });
  // Where each head takes seconds, kinds come with thumbnails.
  const isLater = computed(() => stack.value.thumbs.split === 2 && ofPieces.value?.stack !== stack.value);
  const stop = effect(() => {
    const wantedStack = stack.value;
    if (loadedKinds.peek()?.stack === wantedStack || isLater.value) return;
    const first = wantedStack.layers.findIndex(({ layer }) => layer === selection.peek().layer);
    const current = () => stack.peek() === wantedStack;
    loadedKinds.value = null;
    const show = (loaded: LoadedKinds) => {
      if (current()) loadedKinds.value = loaded;
      return current();
    };
    loadKinds(origin.peek().source, wantedStack, first, show).catch((error) => current() && fail(error));
  });
  return {
    /** Counts the kinds anew only once nothing was typed for a while: else names and colours change with each key. */
    holdKinds(): void {
      held.value = kinds.peek();
      clearTimeout(quiet);
      quiet = setTimeout(() => (held.value = null), QUIET);
    },
    /** What each head of the chosen stack does on this text, as far as it is known yet. */
    kinds,
    opening,
    /** The one head that is shown, as its thumbnail is numbered. */
    full,
    layerNumber: computed(() => {
      const { layers, heads } = stack.value;
      return layers[Math.floor(full.value / heads)].layer;
    }),
    loadedKinds,
    stop,
  };
}

/** Small pictures of all heads, between pieces or between words. */
export function thumbnailState(
  { origin, fail }: Chosen,
  { pieceStack, merge }: TokenState,
  { layerNumber }: Opened,
  /** Those between pieces, and whether none is needed, as for a picture of the tray. */
  { loaded, ofPieces, without }: Pick<Loading, "loaded"> & { ofPieces: Signal<Thumbs | null>; without: boolean },
) {
  // Where each of them takes seconds, the head that is shown goes first.
  const isLater = computed(() => pieceStack.value.thumbs.split === 2 && loaded.value?.stack !== pieceStack.value);
  const stop = effect(() => {
    const wanted = pieceStack.value;
    // A picture of the tray draws them only where they are all that is drawn of a long text.
    if ((without && !wanted.sentences) || ofPieces.peek()?.stack === wanted || isLater.value) return;
    const first = wanted.layers.findIndex(({ layer }) => layer === layerNumber.peek());
    ofPieces.value = null;
    const current = () => pieceStack.peek() === wanted;
    const show = (thumbs: Thumbs) => {
      if (current()) ofPieces.value = thumbs;
      return current();
    };
    loadThumbs(origin.peek().source, wanted, first, show).catch((error) => current() && fail(error));
  });
  return {
    ofPieces,
    thumbs: computed((): LiftThumbs | null => {
      const [now, of] = [ofPieces.value?.lifts ?? null, merge.value];
      const { query, key } = pieceStack.value;
      // Where a cell is of many tokens, words look as their pieces do.
      const isEveryPair = now?.queries === query.labels.length && now.keys === key.labels.length;
      return now && of && isEveryPair ? { ...mergedValues(now, of, true), of: now.of } : now;
    }),
    /** Layers, or heads of a text in groups, whose thumbnails are still to come. */
    thumbsLeft: computed(() => {
      const { layers, heads, thumbs } = pieceStack.value;
      return ofPieces.value?.left ?? layers.length * (thumbs.split === 2 ? heads : 1);
    }),
    stop,
  };
}

/** What one patch of a picture looks at in every head, as multiples of the even share. */
export interface PatchRows {
  readonly query: number;
  readonly tokens: PageTokens;
  readonly raster: Raster;
  /** Of each head one for each key; empty where they are still to come. */
  readonly lifts: readonly Float32Array[];
}

interface Given {
  readonly stack: ReadonlySignal<PageStack>;
  readonly pins: ReadonlySignal<{ readonly query: readonly number[] }>;
  readonly even: ReadonlySignal<LayerValues | null>;
  readonly pictures: ReadonlySignal<readonly (readonly Raster[])[]>;
  readonly rowOf: ReturnType<typeof asking>["rowOf"];
  readonly fail: (error: unknown) => void;
}

/** The rows of the pinned patch, or of the one with most contrast; null where tokens are no patches of one picture. */
export function patchState({ stack, pins, even, pictures, rowOf, fail }: Given) {
  const patchRows = signal<PatchRows | null>(null);
  const chosen = computed(() => {
    const { query, key } = stack.value;
    const rasters = pictures.value[0] ?? [];
    return isPicture(query) && isPicture(key) && rasters.length === 1
      ? (pins.value.query[0] ?? contrastPatch(query, rasters))
      : null;
  });
  const stop = effect(() => {
    const [query, shares] = [chosen.value, even.value];
    if (query === null || !shares) patchRows.value = null;
    else load(stack.value, query, shares.row(0, query)).catch(fail);
  });
  async function load(of: PageStack, query: number, shares: Float32Array): Promise<void> {
    const lifts: Float32Array[] = [];
    for (const layer of of.layers) {
      const row = await rowOf(layer, query, WEIGHT_FACTS);
      if (chosen.peek() !== query || stack.peek() !== of) return;
      for (let head = 0; head < of.heads; head++)
        lifts.push(shares.map((share, key) => liftOf(row(head, key) ?? 0, share)));
    }
    patchRows.value = { query, tokens: of.key, raster: pictures.peek()[0][0], lifts };
  }
  return { patchRows, stop };
}
