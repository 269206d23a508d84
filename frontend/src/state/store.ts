import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals-core";
import type { PageLayer, PageQuantity, PageStack } from "../contract/page";
import { DEFAULTS, MOST_IN_TRAY, VIEWS_WITH } from "../contract/values";
import { parseHex } from "../draw/color";
import { type BarColors, received, type TokenAttention, tokenAttention } from "../draw/focus";
import { kindColor } from "../draw/kinds";
import { everyToken, filterMask, type Mask, muteSpecial, withoutSinks } from "../draw/mask";
import { mergedTokens, mergedValues, mergeOf } from "../draw/merge";
import { headColors, MOST_COLORS, signColors } from "../draw/palette";
import type { Focus, Place, Side } from "../draw/place";
import type { ScoreParts } from "../draw/scores";
import { affordableStep, drawn, type HeadShares, headShares, SHARES } from "../draw/share";
import { findSinks } from "../draw/sinks";
import { thumbShape, weightsOf } from "../draw/thumbs";
import { type LayerValues, largest } from "../draw/values";
import { type LayerWeights, once, withoutKeys } from "../draw/weights";
import { strongestWords } from "../draw/words";
import { sourceBeside } from "../source/beside";
import { type Evidence, loadEvidence } from "../source/evidence";
import { type LoadedKinds, loadKinds } from "../source/kinds";
import { askedRow, type LoadedLayer } from "../source/layer";
import { LayerCache } from "../source/layers";
import { loadPictures, NO_PICTURES, type Pictures } from "../source/pictures";
import type { Source } from "../source/source";
import { loadThumbs } from "../source/thumbs";
import { averaged, joined, joinedRow, type Words } from "./combined";
import { whenIdle } from "./idle";
import { clearestHead, clearestOfEach, kindOf } from "./kinds";
import { type Pooled, pooledLoader } from "./pooled";
import { amongMany, hasQuantity, quantitiesOf, WEIGHT_FACTS } from "./quantity";
import {
  chosenHeads,
  findStack,
  fitSelection,
  isStep,
  keepHead,
  keptHead,
  leaving,
  pageSelection,
  releasePins,
  type Selection,
  togglePin,
} from "./selection";
import { ofEveryRecord, writeEntry } from "./tray";

/** More lines than this are drawn only on request: they would make a layer change slow. */
export const LINE_BUDGET = 30_000;

/** And more lines than this for each query cannot be told apart. */
export const LINES_A_TOKEN = 10;

/** Lines of both signs are more, and grey sooner. */
const SIGNED_BUDGET = 1500;

/** With more heads the map beside the views is too small for matrices, and shows a number of each head. */
const FEW_HEADS = 12;

/** A layer that has been loaded, with all that belongs to it; shown as a whole or not at all. */
export interface Shown extends LoadedLayer {
  readonly stack: PageStack;
  readonly layer: PageLayer;
  /** What is shown of it: the chosen quantity, or weights where this layer has it not. */
  readonly quantity: PageQuantity;
  /** Of a layer between words: the queries and keys of their pieces. */
  readonly pieces?: { readonly scores: ScoreParts | null; readonly of: Words };
}

/** What the pointer or the keyboard is at: a token of one side, or a pair. */
export type Hover = { readonly [Of in Side]?: number };

/** What was shown before, and what comes after a step back. */
interface Steps {
  readonly past: Selection[];
  readonly ahead: Selection[];
}

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
  { past, ahead }: Steps = { past: [], ahead: [] },
) {
  const root = given.root?.header ?? given.header;
  const isRecord = (name: string) => !name || Object.hasOwn(root.beside ?? {}, name);
  const first = { ...pageSelection(root), ...wanted };
  const record = isRecord(first.shown_record) ? first.shown_record : "";
  const source = sourceBeside(given, record);
  const page = source.header;
  const selection = signal(fitSelection({ ...first, shown_record: record }, page, root));
  /** What is to be shown of another record, which has a state of its own. */
  const elsewhere = signal<Selection | null>(null);
  const systemDark = signal(false);
  /** Paper is white. */
  const printing = signal(false);
  const hover = signal<Hover>({});
  /** The layer as it came, in pieces. */
  const loaded = signal<Shown | null>(null);
  const failure = signal<unknown>(null);
  const evidence = signal<Evidence | null>(null);
  const hoverHead = signal<number | null>(null);
  const kinds = signal<LoadedKinds | null>(null);
  const peeked = signal<number | null>(null);
  const help = signal(false);
  const searching = signal(false);
  const said = signal("");
  const loadedPictures = signal<(quantity: string) => Pictures>(() => NO_PICTURES);

  const part = <Key extends keyof Selection>(key: Key) => computed(() => selection.value[key]);
  const [view, stackName, theme, filter] = [part("view"), part("stack"), part("theme"), part("filter")];
  const [mute, keepSinks, share, wantedQuantity] = [
    part("hide_special"),
    part("sinks"),
    part("top_percent"),
    part("quantity"),
  ];
  const [pinned, inWords] = [part("pinned"), part("words")];
  const meanKey = computed(() => (VIEWS_WITH.mask.includes(view.value) ? selection.value.mean_layers.join() : ""));
  const headsKey = computed(() => selection.value.heads?.join() ?? "all");
  const pinsKey = computed(() => `${selection.value.query.join()}|${selection.value.key.join()}`);
  const pins = computed((): Record<Side, readonly number[]> => {
    void pinsKey.value;
    const { query, key } = selection.peek();
    return { query: wordsAt("query", query), key: wordsAt("key", key) };
  });

  const stack = computed(() => findStack(page, stackName.value));
  /** How pieces make words, where these are shown. */
  const merge = computed(() => {
    if (!inWords.value || !hasPieces(stack.value)) return null;
    return { query: mergeOf(stack.value.query), key: mergeOf(stack.value.key) };
  });
  const wordsAt = (side: Side, pieces: readonly number[]): readonly number[] => {
    const of = merge.value?.[side];
    return of ? [...new Set(pieces.map((piece) => of.wordOf[piece]))] : pieces;
  };
  /** The first piece of what is shown as a token. */
  const pieceAt = ({ side, token }: Place): number => merge.peek()?.[side].starts[token] ?? token;
  const wordStack = computed((): PageStack => {
    const [of, { query, key, thumbs }] = [merge.value, stack.value];
    if (!of) return stack.value;
    const words = { query: mergedTokens(query, of.query), key: mergedTokens(key, of.key) };
    const { queries, keys } = thumbShape({ queries: words.query.labels.length, keys: words.key.labels.length });
    const shape = [...thumbs.shape.slice(0, 2), queries, keys];
    return { ...stack.value, ...words, thumbs: { ...thumbs, shape } };
  });
  /** The layer as it is shown: in pieces, or in words. */
  const shown = computed((): Shown | null => {
    const [now, of] = [loaded.value, merge.value];
    if (!now || !of || now.stack !== stack.value) return now;
    return { ...joined(now, of), stack: wordStack.value, pieces: { scores: now.scores, of } };
  });
  /** The one head that the overview shows in full, as its thumbnail is numbered; null in all other views. */
  const full = computed((): number | null => {
    if (view.value !== "overview") return null;
    return peeked.value ?? keptHead(selection.value, stack.value) ?? opening.value;
  });
  /** The head with the clearest pattern, once all are known. */
  const clearest = computed(() => {
    const known = kinds.value;
    return known?.stack === stack.value && known.left === 0 ? clearestHead(known) : null;
  });
  /** What an overview opens on: the clearest head, or the first of the layer until that is known. */
  const opening = computed(() => {
    const row = stack.value.layers.findIndex(({ layer }) => layer === selection.value.layer);
    return clearest.value ?? row * stack.value.heads;
  });
  const layerNumber = computed(() => {
    const { layers, heads } = stack.value;
    return full.value === null ? selection.value.layer : layers[Math.floor(full.value / heads)].layer;
  });
  /** The heads that are asked for, as they stand in the page. */
  const wantedHeads = computed(() => {
    void headsKey.value;
    return full.value === null ? chosenHeads(selection.peek().heads, stack.value) : [full.value % stack.value.heads];
  });
  const wantedKey = computed(() => `${stack.value.name}|${wantedHeads.value.join()}`);
  const dark = computed(() => !printing.value && (theme.value === "auto" ? systemDark.value : theme.value === "dark"));
  const shownStack = computed(() => shown.value?.stack ?? null);
  const nowStack = computed(() => shownStack.value ?? wordStack.value);
  const heads = computed(() => {
    void wantedKey.value;
    const count = shown.value?.weights.heads ?? nowStack.value.heads;
    const here = shown.value?.here;
    const isHere = (head: number) => head < count && (here?.has(head) ?? true);
    const on = wantedHeads.peek().filter(isHere);
    // Neurons are those of one head.
    if (view.value === "neuron") return on.slice(0, 1);
    return on.length > 0 ? on : Array.from({ length: count }, (_, head) => head).filter(isHere);
  });
  const palette = computed(() => {
    const numbers = nowStack.value.head_numbers;
    const kind = full.value !== null && kinds.value?.stack === stack.value && kindOf(kinds.value, full.value);
    // The overview colours by what a head does, all else by its number.
    if (full.value !== null) return numbers.map(() => kindColor(kind || "none", dark.value));
    const known = kinds.value;
    // So many colours cannot be told apart: a head has that of its kind.
    if (numbers.length > MOST_COLORS && known?.stack === stack.value) {
      const row = known.stack.layers.findIndex(({ layer }) => layer === layerNumber.value) * known.stack.heads;
      return numbers.map((_, head) => kindColor(kindOf(known, row + head) ?? "none", dark.value));
    }
    const colors = headColors(Math.max(...numbers) + 1, dark.value);
    return numbers.map((number) => colors[number]);
  });
  const inks = computed(() => palette.value.map(parseHex));
  const quantity = computed(() => amongMany(shown.value?.quantity ?? WEIGHT_FACTS, nowStack.value.key.labels.length));
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
  /** The two words that the first chosen head joins most: where the neuron view opens. */
  const words = computed(() => {
    const now = shown.value;
    return (
      now &&
      strongestWords(
        now.weights,
        heads.value[0],
        now.stack,
        sinks.value.map(({ key }) => key),
      )
    );
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
      ? tokenAttention(values.value, maps.value, mask.value, focus.value, pinned.value)
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
    const legible = LINES_A_TOKEN * nowStack.value.query.labels.length;
    const budget = Math.min(legible, quantity.value.signed ? SIGNED_BUDGET : LINE_BUDGET);
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

  const layers = shared ?? new LayerCache(source);
  const thumbs = signal<LayerWeights | null>(null);
  /** Layers whose thumbnails are still to come. */
  const thumbsLeft = signal(0);
  const waiting = signal("");
  let newest = 0;
  /** The further layers that what is shown is the mean of. */
  let shownMean = "";
  const asShown = (layer: LoadedLayer) => {
    const words = merge.peek();
    return words ? joined(layer, words) : layer;
  };
  const failed = (error: unknown) => {
    failure.value = error;
  };
  const stopLoading = effect(() => {
    const wantedStack = stack.value;
    const number = layerNumber.value;
    const name = wantedQuantity.value;
    void [wantedKey.value, meanKey.value];
    void showLayer(wantedStack, number, wantedHeads.peek(), name);
  });
  const stopThumbs = effect(() => {
    const wantedStack = stack.value;
    if (shared) return;
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
    loadThumbs(source, wantedStack, first, show).catch((error) => current() && failed(error));
  });

  const pooledWords = signal<Pooled | null>(null);
  const poolWords = pooledLoader(
    async (layer) => asShown(await layers.load(stack.peek(), layer)),
    (pooled) => {
      pooledWords.value = pooled;
    },
  );
  /** Whether small pictures have one cell for each pair of tokens, and not for many. */
  const everyPair = computed(() => {
    const { thumbs: array, query, key } = stack.value;
    return array.shape[2] === query.labels.length && array.shape[3] === key.labels.length;
  });
  const stopWords = effect(() => {
    pooledWords.value = null;
    if (!shared && merge.value && !everyPair.value) poolWords(wordStack.value, WEIGHT_FACTS).catch(failed);
  });
  const shownThumbs = computed((): LayerWeights | null => {
    const [now, of] = [thumbs.value, merge.value];
    if (!now || !of) return now;
    if (everyPair.value) return mergedValues(now, of);
    return pooledWords.value && weightsOf(pooledWords.value.made, pooledWords.value.shape);
  });

  // Only the overview and maps of many heads need them, and they stay for the next time.
  const stopKinds = effect(() => {
    const wantedStack = stack.value;
    const wanted = view.value === "overview" || wantedStack.heads > FEW_HEADS;
    if (!wanted || kinds.peek()?.stack === wantedStack) return;
    const first = wantedStack.layers.findIndex(({ layer }) => layer === selection.peek().layer);
    const current = () => stack.peek() === wantedStack;
    kinds.value = null;
    const show = (loaded: LoadedKinds) => {
      if (current()) kinds.value = loaded;
      return current();
    };
    loadKinds(source, wantedStack, first, show).catch((error) => current() && failed(error));
  });

  if (!shared) {
    loadEvidence(source, page).then((loaded) => {
      evidence.value = loaded;
    }, failed);
  }
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
      const one = await layers.load(wantedStack, stub, wanted, of);
      const further = wantedStack.layers.filter(
        ({ layer }) => layer !== number && meanKey.peek() && selection.peek().mean_layers.includes(layer),
      );
      const others = await Promise.all(further.map((layer) => layers.load(wantedStack, layer, wanted, of)));
      if (!current()) return;
      const now = loaded.peek();
      const mean = meanKey.peek();
      const same = now?.stack === wantedStack && now.layer.layer === number && now.quantity.name === of.name;
      const fresh = others.length > 0 ? averaged([one, ...others]) : one;
      batch(() => {
        waiting.value = "";
        if (!same || now.here.size !== fresh.here.size || shownMean !== mean) {
          loaded.value = { stack: wantedStack, layer: fresh.page, quantity: of, ...fresh };
        }
        shownMean = mean;
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

  const besides = new Map([[record, { source, layers }]]);
  function beside(name: string) {
    const from = sourceBeside(given, name);
    const known = besides.get(name) ?? { source: from, layers: new LayerCache(from) };
    besides.set(name, known);
    return known;
  }

  /** What one query has with each key in each head of a layer; undefined where a page cannot tell. */
  async function rowOf(layer: PageLayer, query: number, of: PageQuantity) {
    const words = merge.peek();
    if (!words) return pieceRow(layer, query, of);
    const { starts } = words.query;
    const pieces = Array.from({ length: starts[query + 1] - starts[query] }, (_, at) => starts[query] + at);
    const rows = await Promise.all(pieces.map((piece) => pieceRow(layer, piece, of)));
    return joinedRow(rows, words.key, of.name === "score");
  }

  async function pieceRow(layer: PageLayer, query: number, of: PageQuantity) {
    if (layer.later) return askedRow(source, stack.peek(), layer, of, query);
    const values = (await layers.load(stack.peek(), layer, [], of)).values.get(of.name);
    const row = once((head) => values?.row(head, query));
    const isHere = (head: number) => values && head < values.heads && (layer.held?.includes(head) ?? true);
    return (head: number, key: number) => (isHere(head) ? row(head)?.[key] : undefined);
  }

  function select(change: (selection: Selection) => Selection): void {
    const before = selection.peek();
    const changed = change(before);
    if (changed.shown_record !== record && isRecord(changed.shown_record)) {
      past.push(before);
      ahead.length = 0;
      elsewhere.value = changed;
      return;
    }
    const next = fitSelection(
      { ...leaving(before, changed, stack.peek(), opening.peek()), shown_record: record },
      page,
      root,
    );
    if (isStep(before, next)) {
      past.push(before);
      ahead.length = 0;
    }
    batch(() => {
      hoverHead.value = null;
      peeked.value = null;
      selection.value = next;
    });
  }

  /** Changes parts of the selection. */
  function choose(part: Partial<Selection>): void {
    select((now) => ({ ...now, ...part }));
  }

  /** The selection before the last step, or after it again. */
  function undo(forward: boolean): void {
    const [from, to] = forward ? [ahead, past] : [past, ahead];
    const next = from.pop();
    if (!next) return;
    to.push(selection.peek());
    if (next.shown_record !== record) {
      elsewhere.value = next;
      return;
    }
    batch(() => {
      hoverHead.value = null;
      peeked.value = null;
      selection.value = next;
    });
  }

  /** Pins what is shown as a token, or releases it; to add, beside those that are pinned. */
  function pin(place: Place, add = false): void {
    const first = (side: Side, pieces: readonly number[]) =>
      wordsAt(side, pieces).map((token) => pieceAt({ side, token }));
    select((now) =>
      togglePin(
        { ...now, query: first("query", now.query), key: first("key", now.key) },
        { ...place, token: pieceAt(place) },
        add,
      ),
    );
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
      if (help.value) help.value = false;
      else if (searching.value) searching.value = false;
      else select((now) => ({ ...releasePins(now), kind: null }));
    });
  }

  return {
    page,
    /** The page itself, also where what is shown is a further record of it. */
    root,
    /** The name of the further record that is shown; empty for the page's own. */
    record,
    elsewhere: elsewhere as ReadonlySignal<Selection | null>,
    source,
    selection: selection as ReadonlySignal<Selection>,
    systemDark: systemDark as Signal<boolean>,
    printing: printing as Signal<boolean>,
    shown: shown as ReadonlySignal<Shown | null>,
    failure: failure as ReadonlySignal<unknown>,
    thumbs: shownThumbs,
    hover: hover as ReadonlySignal<Hover>,
    /** What is known of the heads of the chosen stack. */
    evidence: computed(() => (evidence.value?.stack === stack.value ? evidence.value : null)),
    /** The pictures whose patches the tokens are, of each record that is shown. */
    pictures: computed(() => loadedPictures.value(quantity.value.name)),
    /** What each head of the chosen stack does on this text, as far as it is known yet. */
    kinds: computed(() => (kinds.value?.stack === stack.value ? kinds.value : null)),
    /** The head that the pointer is at in the overview, which shows it in full. */
    peeked: peeked as Signal<number | null>,
    full,
    /** Whether the sheet of keys and marks is open. */
    help: help as Signal<boolean>,
    /** Whether the field that finds tokens is open. */
    searching: searching as Signal<boolean>,
    /** What was done and cannot be seen at once, for those who do not see. */
    said: said as Signal<string>,
    /** A further record of the page by name, or its own, with the layers that were unpacked. */
    beside,
    /** What the shown heads together give to each key. */
    overall,
    /** The head under the pointer, as its thumbnail is numbered. */
    hoverHead: hoverHead as Signal<number | null>,
    view,
    quantity,
    /** The quantities that the chosen stack has. */
    quantities: computed(() => quantitiesOf(page, stack.value)),
    layerNumber,
    stack: wordStack,
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
    words,
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
    load: async (layer: PageLayer, quantity?: PageQuantity) =>
      asShown(await layers.load(stack.peek(), layer, [], quantity)),
    /** A layer of the chosen stack with one of its heads, as that stands in the page. */
    loadHead: async (layer: PageLayer, head: number) => asShown(await layers.load(stack.peek(), layer, [head])),
    thumbsLeft: computed(() => (merge.value && !everyPair.value ? (pooledWords.value?.left ?? 1) : thumbsLeft.value)),
    /** What was asked for and is not shown yet; empty where nothing is. */
    waiting: waiting as ReadonlySignal<string>,
    rowOf,
    /** Asks Python for a figure, where there is a Python. */
    figure: source.figure,
    select,
    pin,
    /** The first piece of what is shown as a token. */
    pieceAt,
    /** Whether words of the chosen stack have several pieces. */
    hasPieces: computed(() => hasPieces(stack.value)),
    /** Whether what is shown as tokens are words of several pieces. */
    merged: computed(() => merge.value !== null),
    choose,
    undo,
    preview,
    release,
    /** Says in place of the view what went wrong. */
    fail,
    destroy() {
      stopLoading();
      stopThumbs();
      stopWords();
      stopKinds();
    },
  };
}

function hasPieces({ query, key }: PageStack): boolean {
  return query.continues.includes(true) || key.continues.includes(true);
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

/** Puts what is shown into the tray: of the overview the head in full. */
export function freeze(store: Store): void {
  const { selection, stack, full, page, record } = store;
  const now = selection.value;
  const at = full.value;
  addToTray(store, writeEntry(at === null ? now : { ...keepHead(now, at, stack.value), view: "head" }, page, record));
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

/** Compares the clearest head of each kind. */
export function compareClearest(store: Store): void {
  const known = store.kinds.value;
  if (known?.left === 0) {
    const tray = clearestOfEach(known).flatMap(({ head }) => ofEveryRecord(headLine(store, head), store.root));
    store.choose({ view: "compare", tray: tray.slice(0, MOST_IN_TRAY) });
  }
}
