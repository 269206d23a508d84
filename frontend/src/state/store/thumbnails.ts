import { batch, computed, effect, type Signal, signal } from "@preact/signals-core";
import { mergedValues } from "../../draw/merge";
import { type LiftThumbs, liftsOfHeads } from "../../draw/thumbs";
import { loadThumbs, type Thumbs } from "../../source/thumbs";
import { type Pooled, pooledLoader } from "../pooled";
import { WEIGHT_FACTS } from "../quantity";
import type { Chosen } from "./chosen";
import type { asking } from "./loading";
import type { Opened } from "./opened";
import type { TokenState } from "./tokens";

/** Small pictures of all heads, between pieces as the page has them, or between words. */
export function thumbnailState(
  { origin, fail }: Chosen,
  { pieceStack, stack, merge }: TokenState,
  { layerNumber }: Opened,
  { load }: ReturnType<typeof asking>,
  /** Those between pieces, and whether none is needed, as for a picture of the tray. */
  { ofPieces, without }: { ofPieces: Signal<Thumbs | null>; without: boolean },
) {
  const ofWords = signal<Pooled | null>(null);
  const poolWords = pooledLoader(load, (pooled) => (ofWords.value = pooled));
  /** Whether they have one cell for each pair of tokens, and not for many. */
  const everyPair = computed(() => {
    const { thumbs: array, query, key } = pieceStack.value;
    return array.shape[2] === query.labels.length && array.shape[3] === key.labels.length;
  });
  const stopPieces = effect(() => {
    const wanted = pieceStack.value;
    // A picture of the tray draws them only where they are all that is drawn of a long text.
    if ((without && !wanted.sentences) || ofPieces.peek()?.stack === wanted) return;
    const first = wanted.layers.findIndex(({ layer }) => layer === layerNumber.peek());
    ofPieces.value = null;
    const current = () => pieceStack.peek() === wanted;
    const show = (thumbs: Thumbs) => {
      if (current()) ofPieces.value = thumbs;
      return current();
    };
    loadThumbs(origin.peek().source, wanted, first, show).catch((error) => current() && fail(error));
  });
  const stopWords = effect(() => {
    ofWords.value = null;
    if (!without && merge.value && !everyPair.value) poolWords(stack.value, WEIGHT_FACTS).catch(fail);
  });
  return {
    ofPieces,
    thumbs: computed((): LiftThumbs | null => {
      const [now, of] = [ofPieces.value?.lifts ?? null, merge.value];
      if (!now || !of) return now;
      if (everyPair.value) return { ...mergedValues(now, of, true), of: now.of };
      return ofWords.value && liftsOfHeads(ofWords.value.made, ofWords.value.shape, now.of);
    }),
    /** Layers whose thumbnails are still to come. */
    thumbsLeft: computed(() => {
      if (merge.value && !everyPair.value) return ofWords.value?.left ?? 1;
      return ofPieces.value?.left ?? pieceStack.value.layers.length;
    }),
    stop: () => batch(() => [stopPieces, stopWords].forEach((end) => void end())),
  };
}
