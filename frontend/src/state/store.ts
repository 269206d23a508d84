import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import type { PageLayer, PageStack } from "../contract/page";
import { parseHex } from "../draw/color";
import { tokenAttention } from "../draw/focus";
import { filterMask, type Mask, muteSpecial } from "../draw/mask";
import { headColors } from "../draw/palette";
import { type Place, samePlace } from "../draw/place";
import { affordableStep, drawn, type HeadShares, headShares, SHARES } from "../draw/share";
import type { LayerWeights } from "../draw/weights";
import { LayerCache } from "../source/layers";
import type { Source } from "../source/source";
import { chosenHeads, findStack, fitSelection, pageSelection, type Selection } from "./selection";

/** More lines than this are drawn only on request: they would make a layer change slow and a picture grey. */
export const LINE_BUDGET = 30_000;

/** A layer that has been loaded, with all that belongs to it; shown as a whole or not at all. */
export interface Shown {
  readonly stack: PageStack;
  readonly layer: PageLayer;
  readonly weights: LayerWeights;
}

/** The state of one view: what is selected, and all that follows from it. */
export type Store = ReturnType<typeof createStore>;

export function createStore(source: Source, wanted: Partial<Selection> = {}) {
  const page = source.header;
  const selection = signal(fitSelection({ ...pageSelection(page), ...wanted }, page));
  const systemDark = signal(false);
  const hover = signal<Place | null>(null);
  const shown = signal<Shown | null>(null);
  const failure = signal<unknown>(null);

  const stackName = computed(() => selection.value.stack);
  const layerNumber = computed(() => selection.value.layer);
  const theme = computed(() => selection.value.theme);
  const filter = computed(() => selection.value.filter);
  const mute = computed(() => selection.value.mute);
  const share = computed(() => selection.value.share);
  const pin = computed(() => selection.value.pin);
  const headsKey = computed(() => selection.value.heads?.join() ?? "all");

  const stack = computed(() => findStack(page, stackName.value));
  const dark = computed(() => (theme.value === "auto" ? systemDark.value : theme.value === "dark"));
  const shownStack = computed(() => shown.value?.stack ?? null);
  const heads = computed(() => {
    void headsKey.value;
    const count = (shownStack.value ?? stack.value).heads;
    const on = chosenHeads(selection.peek().heads, count).filter((head) => head < count);
    return on.length > 0 ? on : chosenHeads(null, count);
  });
  const palette = computed(() => headColors((shownStack.value ?? stack.value).heads, dark.value));
  const inks = computed(() => palette.value.map(parseHex));
  const unmuted = computed(() => shownStack.value && filterMask(shownStack.value, filter.value));
  const mask = computed(() =>
    unmuted.value && shownStack.value && mute.value ? muteSpecial(unmuted.value, shownStack.value) : unmuted.value,
  );
  const focus = computed(() => placeInMask(pin.value ?? hover.value, mask.value));

  const attention = computed(() => {
    const [now, shownTokens, place] = [shown.value, mask.value, focus.value];
    return now && shownTokens && place && tokenAttention(now.weights, heads.value, shownTokens, place);
  });

  const sharesOf = computed(() => lazyShares(shown.value, mask.value));
  const step = computed(() => {
    if (share.value !== null) return SHARES.indexOf(share.value);
    return affordableStep(heads.value.map(sharesOf.value), LINE_BUDGET);
  });
  const summary = computed(() => drawn(heads.value.map(sharesOf.value), step.value));
  const mutedPart = computed(() => {
    if (!mute.value || !unmuted.value) return 0;
    const all = heads.value.map(lazyShares(shown.value, unmuted.value));
    const rest = heads.value.map(sharesOf.value);
    const last = SHARES.length - 1;
    return drawn(all, last).part - drawn(rest, last).part;
  });

  const layers = new LayerCache(source);
  const stopLoading = effect(() => {
    const wantedStack = stack.value;
    const number = layerNumber.value;
    void showLayer(wantedStack, number);
  });

  async function showLayer(wantedStack: PageStack, number: number): Promise<void> {
    const current = () => stack.peek() === wantedStack && layerNumber.peek() === number;
    const at = wantedStack.layers.findIndex(({ layer }) => layer === number);
    const layer = wantedStack.layers[at];
    try {
      const weights = await layers.load(wantedStack, layer);
      if (!current()) return;
      shown.value = { stack: wantedStack, layer, weights };
      for (const next of [at + 1, at - 1]) if (next in wantedStack.layers) prefetch(wantedStack, next, current);
    } catch (error) {
      if (current()) failure.value = error;
    }
  }

  function prefetch(wantedStack: PageStack, at: number, current: () => boolean): void {
    whenIdle(() => {
      // A neighbour that cannot be loaded is reported when the reader asks for it.
      if (current()) layers.load(wantedStack, wantedStack.layers[at]).catch(() => undefined);
    });
  }

  function select(change: (selection: Selection) => Selection): void {
    selection.value = fitSelection(change(selection.peek()), page);
  }

  function preview(place: Place | null): void {
    if (!samePlace(place, hover.peek())) hover.value = place;
  }

  function release(): void {
    batch(() => {
      hover.value = null;
      select((now) => ({ ...now, pin: null }));
    });
  }

  return {
    page,
    selection: selection as ReadonlySignal<Selection>,
    systemDark: systemDark as Signal<boolean>,
    shown: shown as ReadonlySignal<Shown | null>,
    failure: failure as ReadonlySignal<unknown>,
    stack,
    shownStack,
    dark,
    heads,
    palette,
    inks,
    mask,
    pin,
    focus,
    /** The attention of the token in focus. */
    attention,
    sharesOf,
    step,
    summary,
    mutedPart,
    select,
    preview,
    release,
    destroy: stopLoading,
  };
}

/** The shares of each head, worked out when first asked for. */
function lazyShares(shown: Shown | null, mask: Mask | null): (head: number) => HeadShares {
  const known = new Map<number, HeadShares>();
  return (head) => {
    const shares = known.get(head) ?? (shown && mask ? headShares(shown.weights, head, mask) : NO_SHARES);
    known.set(head, shares);
    return shares;
  };
}

const NO_SHARES: HeadShares = {
  cutoffs: new Uint16Array(0),
  lines: new Float64Array(SHARES.length),
  mass: new Float64Array(SHARES.length),
  total: 0,
};

function placeInMask(place: Place | null, mask: Mask | null): Place | null {
  return place && mask?.[place.side][place.token] ? place : null;
}

function whenIdle(task: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(task, { timeout: 1000 });
  else setTimeout(task, 50);
}
