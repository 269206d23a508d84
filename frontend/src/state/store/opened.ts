import { computed, effect, signal } from "@preact/signals-core";
import { type LoadedKinds, loadKinds } from "../../source/kinds";
import { clearestHead } from "../kinds";
import { chosenHeads, keptHead } from "../selection";
import type { Chosen } from "./chosen";
import type { TokenState } from "./tokens";

/** With more heads the map beside the views is too small for matrices, and shows a number of each head. */
const FEW_HEADS = 12;

/** Which layer and heads are looked at, and what each head does. */
export type Opened = ReturnType<typeof openedState>;

/** The layer and heads that are chosen; in an overview of the head that it shows in full. */
export function openedState({ selection, view, peeked, origin, fail }: Chosen, { pieceStack: stack }: TokenState) {
  const loadedKinds = signal<LoadedKinds | null>(null);
  const kinds = computed(() => (loadedKinds.value?.stack === stack.value ? loadedKinds.value : null));
  /** What an overview opens on: the clearest head, or the first of the layer until that is known. */
  const opening = computed(() => {
    const row = stack.value.layers.findIndex(({ layer }) => layer === selection.value.layer);
    const clearest = kinds.value?.left === 0 ? clearestHead(kinds.value) : null;
    return clearest ?? row * stack.value.heads;
  });
  const full = computed((): number | null => {
    if (view.value !== "overview") return null;
    return peeked.value ?? keptHead(selection.value, stack.value) ?? opening.value;
  });
  const headsKey = computed(() => selection.value.heads?.join() ?? "all");
  const wantedHeads = computed(() => {
    void headsKey.value;
    return full.value === null ? chosenHeads(selection.peek().heads, stack.value) : [full.value % stack.value.heads];
  });
  // Only the overview and maps of many heads need them, and they stay for the next time.
  const stop = effect(() => {
    const wantedStack = stack.value;
    const wanted = view.value === "overview" || wantedStack.heads > FEW_HEADS;
    if (!wanted || loadedKinds.peek()?.stack === wantedStack) return;
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
    /** What each head of the chosen stack does on this text, as far as it is known yet. */
    kinds,
    opening,
    /** The one head that the overview shows in full, as its thumbnail is numbered; null in all other views. */
    full,
    layerNumber: computed(() => {
      const { layers, heads } = stack.value;
      return full.value === null ? selection.value.layer : layers[Math.floor(full.value / heads)].layer;
    }),
    /** The heads that are asked for, as they stand in the page. */
    wantedHeads,
    wantedKey: computed(() => `${stack.value.name}|${wantedHeads.value.join()}`),
    loadedKinds,
    stop,
  };
}
