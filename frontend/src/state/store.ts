import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import type { PageLayer, PageQuantity, PageStack } from "../contract/page";
import { parseHex } from "../draw/color";
import { type BarColors, received, type TokenAttention, tokenAttention } from "../draw/focus";
import { everyToken, filterMask, type Mask, muteSpecial, withoutSinks } from "../draw/mask";
import { headColors, signColors } from "../draw/palette";
import type { Focus, Side } from "../draw/place";
import { affordableStep, drawn, type HeadShares, headShares, SHARES } from "../draw/share";
import { findSinks } from "../draw/sinks";
import { type LayerValues, largest } from "../draw/values";
import { type LayerWeights, once, withoutKeys } from "../draw/weights";
import { type Evidence, loadEvidence } from "../source/evidence";
import { askedRow, type LoadedLayer } from "../source/layer";
import { LayerCache } from "../source/layers";
import { loadPictures, NO_PICTURES, type Pictures } from "../source/pictures";
import type { Source } from "../source/source";
import { loadThumbs } from "../source/thumbs";
import { whenIdle } from "./idle";
import { hasQuantity, quantitiesOf, WEIGHT_FACTS } from "./quantity";
import { chosenHeads, findStack, fitSelection, pageSelection, releasePins, type Selection } from "./selection";

/** More lines than this are drawn only on request: they would make a layer change slow and a picture grey. */
export const LINE_BUDGET = 30_000;

/** Lines of both signs are more, and grey sooner. */
const SIGNED_BUDGET = 1500;

/** A layer that has been loaded, with all that belongs to it; shown as a whole or not at all. */
export interface Shown extends LoadedLayer {
  readonly stack: PageStack;
  readonly layer: PageLayer;
  /** What is shown of it: the chosen quantity, or weights where this layer has it not. */
  readonly quantity: PageQuantity;
}

/** What the pointer or the keyboard is at: a token of one side, or a pair. */
export type Hover = { readonly [Of in Side]?: number };

/** The state of all views: what is selected, and all that follows from it. */
export type Store = ReturnType<typeof createStore>;

export function createStore(source: Source, wanted: Partial<Selection> = {}) {
  const page = source.header;
  const selection = signal(fitSelection({ ...pageSelection(page), ...wanted }, page));
  const systemDark = signal(false);
  const hover = signal<Hover>({});
  const shown = signal<Shown | null>(null);
  const failure = signal<unknown>(null);
  const evidence = signal<Evidence | null>(null);
  const hoverHead = signal<number | null>(null);
  const loadedPictures = signal<(quantity: string) => Pictures>(() => NO_PICTURES);

  const part = <Key extends keyof Selection>(key: Key) => computed(() => selection.value[key]);
  const [view, stackName, layerNumber, theme, filter] = [
    part("view"),
    part("stack"),
    part("layer"),
    part("theme"),
    part("filter"),
  ];
  const [mute, keepSinks, share, wantedQuantity] = [part("mute"), part("sinks"), part("share"), part("quantity")];
  const headsKey = computed(() => selection.value.heads?.join() ?? "all");
  const pinsKey = computed(() => `${selection.value.query.join()}|${selection.value.key.join()}`);
  const pins = computed((): Record<Side, readonly number[]> => {
    void pinsKey.value;
    return { query: selection.peek().query, key: selection.peek().key };
  });

  const stack = computed(() => findStack(page, stackName.value));
  const dark = computed(() => (theme.value === "auto" ? systemDark.value : theme.value === "dark"));
  const shownStack = computed(() => shown.value?.stack ?? null);
  const nowStack = computed(() => shownStack.value ?? stack.value);
  const heads = computed(() => {
    void headsKey.value;
    const count = shown.value?.weights.heads ?? nowStack.value.heads;
    const here = shown.value?.here;
    const isHere = (head: number) => head < count && (here?.has(head) ?? true);
    const on = chosenHeads(selection.peek().heads, nowStack.value).filter(isHere);
    return on.length > 0 ? on : Array.from({ length: count }, (_, head) => head).filter(isHere);
  });
  const palette = computed(() => {
    const numbers = nowStack.value.head_numbers;
    const colors = headColors(Math.max(...numbers) + 1, dark.value);
    return numbers.map((number) => colors[number]);
  });
  const inks = computed(() => palette.value.map(parseHex));
  const quantity = computed(() => shown.value?.quantity ?? WEIGHT_FACTS);
  /** Where the maps that are drawn stand: those of the chosen heads, or the one that the layer has. */
  const maps = computed(() => (quantity.value.per === "layer" ? [0] : heads.value));
  const mapColors = computed(() =>
    quantity.value.per === "layer" ? [signColors(dark.value)[0]] : heads.value.map((head) => palette.value[head]),
  );
  /** The colours of lines: of each map, or of both signs. */
  const lineInks = computed(() =>
    (quantity.value.signed ? signColors(dark.value) : mapColors.value).map((hex) => parseHex(hex)),
  );

  const overall = computed(
    () => shown.value && received(shown.value.weights, heads.value, everyToken(shown.value.stack)),
  );
  const sinks = computed(() => (overall.value ? findSinks(overall.value) : []));
  const weights = computed((): LayerWeights | null => {
    if (!shown.value || keepSinks.value || sinks.value.length === 0) return shown.value?.weights ?? null;
    const kept = new Uint8Array(shown.value.weights.keys).fill(1);
    for (const { key } of sinks.value) kept[key] = 0;
    return withoutKeys(shown.value.weights, kept);
  });
  /** The chosen quantity as it is shown; what is no weight is not renormalised. */
  const values = computed((): LayerValues | null =>
    quantity.value.name === WEIGHT_FACTS.name ? weights.value : (shown.value?.values.get(quantity.value.name) ?? null),
  );
  /** What each key adds when it has all the weight, as mean over the chosen heads; null where it is not known. */
  const valueNorms = computed(() => {
    const norms = shown.value?.valueNorms;
    if (!norms || !shown.value) return null;
    const { keys } = shown.value.weights;
    const values = new Float32Array(keys);
    for (const head of heads.value) {
      for (let key = 0; key < keys; key++) values[key] += norms[head * keys + key] / heads.value.length;
    }
    return { values, most: largest(values) };
  });
  const unmuted = computed(() => {
    if (!shownStack.value) return null;
    const mask = filterMask(shownStack.value, filter.value);
    return keepSinks.value
      ? mask
      : withoutSinks(
          mask,
          sinks.value.map(({ key }) => key),
        );
  });
  const mask = computed(() =>
    unmuted.value && shownStack.value && mute.value ? muteSpecial(unmuted.value, shownStack.value) : unmuted.value,
  );
  const focus = computed(() => focusIn(pins.value, mask.value) ?? focusIn(asLists(hover.value), mask.value));
  const attention = computed((): TokenAttention | null =>
    values.value && mask.value && focus.value
      ? tokenAttention(values.value, maps.value, mask.value, focus.value)
      : null,
  );
  /** The query and the key that are looked at together: pinned, or else under the pointer. */
  const pair = computed((): Record<Side, number | null> => {
    const at = (side: Side) => pins.value[side][0] ?? hover.value[side] ?? null;
    return { query: at("query"), key: at("key") };
  });

  const sharesOf = computed(() => lazyShares(values.value, mask.value));
  const step = computed(() => {
    if (share.value !== null) return SHARES.indexOf(share.value);
    const budget = quantity.value.signed ? SIGNED_BUDGET : LINE_BUDGET;
    return affordableStep(maps.value.map(sharesOf.value), budget);
  });
  const summary = computed(() => drawn(maps.value.map(sharesOf.value), step.value));
  const mutedPart = computed(() => {
    if (!mute.value || !unmuted.value) return 0;
    const all = maps.value.map(lazyShares(values.value, unmuted.value));
    const rest = maps.value.map(sharesOf.value);
    const last = SHARES.length - 1;
    return drawn(all, last).part - drawn(rest, last).part;
  });

  const layers = new LayerCache(source);
  const thumbs = signal<LayerWeights | null>(null);
  /** Layers whose thumbnails are still to come. */
  const thumbsLeft = signal(0);
  const waiting = signal("");
  let newest = 0;
  const stopLoading = effect(() => {
    const wantedStack = stack.value;
    const number = layerNumber.value;
    const name = wantedQuantity.value;
    void headsKey.value;
    void showLayer(wantedStack, number, chosenHeads(selection.peek().heads, wantedStack), name);
  });
  const stopThumbs = effect(() => {
    const wantedStack = stack.value;
    const first = wantedStack.layers.findIndex(({ layer }) => layer === layerNumber.peek());
    batch(() => {
      thumbs.value = null;
      thumbsLeft.value = wantedStack.layers.length;
    });
    const current = () => stack.peek() === wantedStack;
    const show = ({ weights, left }: { weights: LayerWeights; left: number }) => {
      if (!current()) return false;
      batch(() => {
        thumbs.value = weights;
        thumbsLeft.value = left;
      });
      return true;
    };
    loadThumbs(source, wantedStack, first, show).catch((error) => {
      if (current()) failure.value = error;
    });
  });

  const failed = (error: unknown) => {
    failure.value = error;
  };
  loadEvidence(source, page).then((loaded) => {
    evidence.value = loaded;
  }, failed);
  loadPictures(source).then((loaded) => {
    loadedPictures.value = loaded;
  }, failed);

  /** A quantity of the page that a layer has; else the weights. */
  function quantityFor(wantedStack: PageStack, layer: PageLayer, name: string): PageQuantity {
    const known = quantitiesOf(page, wantedStack).find((quantity) => quantity.name === name);
    return known && hasQuantity(layer, name) ? known : WEIGHT_FACTS;
  }

  async function showLayer(
    wantedStack: PageStack,
    number: number,
    wanted: readonly number[],
    name: string,
  ): Promise<void> {
    const mine = ++newest;
    const current = () => mine === newest;
    const at = wantedStack.layers.findIndex(({ layer }) => layer === number);
    const stub = wantedStack.layers[at];
    waiting.value = `layer ${number}`;
    try {
      const of = quantityFor(wantedStack, stub, name);
      const loaded = await layers.load(wantedStack, stub, wanted, of);
      if (!current()) return;
      const now = shown.peek();
      const same = now?.stack === wantedStack && now.layer === loaded.page && now.quantity.name === of.name;
      batch(() => {
        waiting.value = "";
        if (!same || now.here !== loaded.here) {
          shown.value = { stack: wantedStack, layer: loaded.page, quantity: of, ...loaded };
        }
      });
      for (const next of [at + 1, at - 1]) if (next in wantedStack.layers) prefetch(wantedStack, next, wanted, current);
    } catch (error) {
      if (current()) failure.value = error;
    }
  }

  function prefetch(wantedStack: PageStack, at: number, wanted: readonly number[], current: () => boolean): void {
    whenIdle(() => {
      if (!current()) return;
      // A neighbour that cannot be loaded is reported when the reader asks for it.
      const of = quantity.peek();
      const loading = layers.load(wantedStack, wantedStack.layers[at], wanted, of).catch(() => null);
      void loading.then((loaded) => {
        // One head at a time, so that the page answers in between.
        const values = loaded?.values.get(of.name);
        for (const map of maps.peek()) {
          if (of.per === "layer" || loaded?.here.has(map)) whenIdle(() => current() && values?.bytes(map));
        }
      });
    });
  }

  /** What one query has with each key in each head of a layer; undefined where a page cannot tell. */
  async function rowOf(layer: PageLayer, query: number, of: PageQuantity) {
    if (layer.later) return askedRow(source, stack.peek(), layer, of, query);
    const values = (await layers.load(stack.peek(), layer, [], of)).values.get(of.name);
    const row = once((head) => values?.row(head, query));
    return (head: number, key: number) => (values && head < values.heads ? row(head)?.[key] : undefined);
  }

  function select(change: (selection: Selection) => Selection): void {
    hoverHead.value = null;
    selection.value = fitSelection(change(selection.peek()), page);
  }

  function preview(at: Hover): void {
    const now = hover.peek();
    if (at.query !== now.query || at.key !== now.key) hover.value = at;
  }

  function fail(error: unknown): void {
    failure.value = error;
  }

  function release(): void {
    batch(() => {
      hover.value = {};
      select(releasePins);
    });
  }

  return {
    page,
    selection: selection as ReadonlySignal<Selection>,
    systemDark: systemDark as Signal<boolean>,
    shown: shown as ReadonlySignal<Shown | null>,
    failure: failure as ReadonlySignal<unknown>,
    thumbs: thumbs as ReadonlySignal<LayerWeights | null>,
    hover: hover as ReadonlySignal<Hover>,
    /** What is known of the heads of the chosen stack. */
    evidence: computed(() => (evidence.value?.stack === stack.value ? evidence.value : null)),
    /** The pictures whose patches the tokens are, of each record that is shown. */
    pictures: computed(() => loadedPictures.value(quantity.value.name)),
    /** The head under the pointer, as its thumbnail is numbered. */
    hoverHead: hoverHead as Signal<number | null>,
    view,
    quantity,
    /** The quantities that the chosen stack has. */
    quantities: computed(() => quantitiesOf(page, stack.value)),
    layerNumber,
    stack,
    shownStack,
    dark,
    heads,
    palette,
    inks,
    maps,
    mapColors,
    lineInks,
    mask,
    pins,
    focus,
    pair,
    /** The weights as they are shown: without sinks and renormalised where the reader wants that. */
    weights,
    values,
    valueNorms,
    /** What the tokens in focus have of the chosen quantity. */
    attention,
    sinks,
    keepSinks,
    sharesOf,
    step,
    summary,
    mutedPart,
    /** A layer of the chosen stack, loaded with all its heads, with a quantity. */
    load: (layer: PageLayer, quantity?: PageQuantity) => layers.load(stack.peek(), layer, [], quantity),
    thumbsLeft: thumbsLeft as ReadonlySignal<number>,
    /** What was asked for and is not shown yet; empty where nothing is. */
    waiting: waiting as ReadonlySignal<string>,
    rowOf,
    /** Asks Python for a figure, where there is a Python. */
    figure: source.figure,
    select,
    preview,
    release,
    /** Says in place of the view what went wrong. */
    fail,
    destroy() {
      stopLoading();
      stopThumbs();
    },
  };
}

/** The colours of bars that stand for what is shown. */
export function barColors({ quantity, mapColors, dark }: Store): BarColors {
  return quantity.value.signed ? { signs: signColors(dark.value) } : { maps: mapColors.value };
}

/** The shares of each head, worked out when first asked for. */
function lazyShares(values: LayerValues | null, mask: Mask | null): (head: number) => HeadShares {
  const known = new Map<number, HeadShares>();
  return (head) => {
    const shares = known.get(head) ?? (values && mask ? headShares(values, head, mask) : NO_SHARES);
    known.set(head, shares);
    return shares;
  };
}

const NO_SHARES: HeadShares = {
  cutoffs: new Uint16Array(0),
  lines: new Float64Array(SHARES.length),
  mass: new Float64Array(SHARES.length),
  counted: new Float64Array(SHARES.length),
  total: 0,
};

function asLists({ query, key }: Hover): Record<Side, readonly number[]> {
  return { query: query === undefined ? [] : [query], key: key === undefined ? [] : [key] };
}

/** The tokens whose attention is followed: the queries where there are any, else the keys. */
function focusIn(tokens: Record<Side, readonly number[]>, mask: Mask | null): Focus | null {
  for (const side of ["query", "key"] as const) {
    const inside = tokens[side].filter((token) => mask?.[side][token]);
    if (inside.length > 0) return { side, tokens: inside };
  }
  return null;
}
