import { computed, effect, type ReadonlySignal, signal } from "@preact/signals-core";
import type { Evidence } from "../../source/evidence";
import { type LoadedKinds, loadKinds } from "../../source/kinds";
import type { Thumbs } from "../../source/thumbs";
import { kindsOverTexts } from "../evidence";
import { aligningHead, clearestHead } from "../kinds";
import { isOneText } from "../places";
import { keptHead } from "../selection";
import type { Chosen } from "./chosen";
import type { TokenState } from "./tokens";

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
  const stop = effect(() => {
    const wantedStack = stack.value;
    if (loadedKinds.peek()?.stack === wantedStack) return;
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
