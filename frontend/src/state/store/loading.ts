import { batch, computed, effect, signal } from "@preact/signals-core";
import type { Page, PageLayer, PageQuantity, PageStack } from "../../../types/page";
import type { ScoreParts } from "../../draw/scores";
import { once } from "../../draw/weights";
import { askedRow, LayerCache, type LoadedLayer, type WantedHeads } from "../../source/layers";
import { type Source, sourceBeside } from "../../source/source";
import { hasQuantity, quantitiesOf, WEIGHT_FACTS } from "../quantity";
import { type Chosen, joined, joinedRow, type TokenState, type Words } from "./chosen";
import type { Opened } from "./heads";

/** A layer that has been loaded, with all that belongs to it; shown as a whole or not at all. */
export interface Shown extends LoadedLayer {
  readonly stack: PageStack;
  readonly layer: PageLayer;
  /** What is shown of it: the chosen quantity, or weights where this layer has it not. */
  readonly quantity: PageQuantity;
  /** Of a layer between words: the queries and keys of their pieces. */
  readonly pieces?: { readonly scores: ScoreParts | null; readonly of: Words };
}

/** What is asked for: a layer of a stack, one of its heads, and a quantity. */
type Asked = { readonly stack: PageStack; readonly number: number; readonly head: number; readonly name: string };

export type Loading = ReturnType<typeof loadingState>;

/** The layer that is shown, loaded whenever another one is chosen, and its neighbours after it. */
export function loadingState(
  { origin, page, part, fail }: Chosen,
  { pieceStack, stack, merge }: TokenState,
  { layerNumber, full }: Opened,
) {
  const wantedQuantity = part("quantity");
  /** The layer as it came, in pieces. */
  const loaded = signal<Shown | null>(null);
  const waiting = signal("");
  let newest = 0;
  const stop = effect(() => {
    const asked = { stack: pieceStack.value, number: layerNumber.value, name: wantedQuantity.value };
    void showLayer({ ...asked, head: full.value % asked.stack.heads });
  });
  async function showLayer(asked: Asked): Promise<void> {
    const mine = ++newest;
    const current = () => mine === newest;
    waiting.value = `layer ${asked.number}`;
    try {
      const [of, fresh] = await loadedOf(asked);
      if (!current()) return;
      const now = loaded.peek();
      const same = now?.stack === asked.stack && now.layer.layer === asked.number && now.quantity.name === of.name;
      batch(() => {
        waiting.value = "";
        if (!same || now.here.size !== fresh.here.size)
          loaded.value = { stack: asked.stack, layer: fresh.page, quantity: of, ...fresh };
      });
      const { layers, source } = origin.peek();
      // The record of a live model is gone with the next key: it is worth it once the reader goes from layer to layer.
      if (!asked.stack.sentences && (!source.passing || (now && !same))) prefetchBeside(layers, asked, of, current);
    } catch (error) {
      if (current()) fail(error);
    }
  }
  async function loadedOf({ stack: of, number, head, name }: Asked): Promise<[PageQuantity, LoadedLayer]> {
    const stub = of.layers[of.layers.findIndex(({ layer }) => layer === number)];
    const quantity = quantityFor(page.peek(), of, stub, name);
    return [quantity, await origin.peek().layers.load(of, stub, [head], quantity)];
  }
  return {
    /** What was asked for and is not shown yet; empty where nothing is. */
    waiting,
    loaded,
    /** The layer as it is shown: in pieces, or in words. */
    shown: computed((): Shown | null => {
      const [now, of] = [loaded.value, merge.value];
      if (!now || !of || now.stack !== pieceStack.value) return now;
      return { ...joined(now, of), stack: stack.value, pieces: { scores: now.scores, of } };
    }),
    stop(): void {
      newest++;
      stop();
    },
  };
}

/** A quantity of the page that a layer has; else the weights. */
function quantityFor(page: Page, stack: PageStack, layer: PageLayer, name: string): PageQuantity {
  const known = quantitiesOf(page, stack).find((quantity) => quantity.name === name);
  return known && hasQuantity(layer, name) ? known : WEIGHT_FACTS;
}

/** Loads the neighbours of a layer when the page has nothing else to do. */
function prefetchBeside(layers: LayerCache, asked: Asked, of: PageQuantity, current: () => boolean): void {
  const { stack, number, head } = asked;
  const at = stack.layers.findIndex(({ layer }) => layer === number);
  for (const next of [at + 1, at - 1]) {
    if (!(next in stack.layers)) continue;
    whenIdle(() => {
      if (!current()) return;
      // A neighbour that cannot be loaded is reported when the reader asks for it.
      const loading = layers.load(stack, stack.layers[next], [head], of).catch(() => null);
      void loading.then((loaded) => {
        const map = of.per === "layer" ? 0 : head;
        if (of.per === "layer" || loaded?.here.has(map))
          whenIdle(() => current() && loaded?.values.get(of.name)?.bytes(map));
      });
    });
  }
}

/** Layers and rows that a view asks for by itself. */
export function asking({ origin, record }: Chosen, { pieceStack, merge }: TokenState) {
  const asShown = (layer: LoadedLayer) => {
    const words = merge.peek();
    return words ? joined(layer, words) : layer;
  };
  const besides = new Map<string, { source: Source; layers: LayerCache }>();
  const load = (layer: PageLayer, heads: WantedHeads, quantity?: PageQuantity) =>
    origin.peek().layers.load(pieceStack.peek(), layer, heads, quantity);
  async function pieceRow(layer: PageLayer, query: number, of: PageQuantity) {
    if (layer.later) return askedRow(origin.peek().source, pieceStack.peek(), layer, of, query);
    const values = (await load(layer, [], of)).values.get(of.name);
    const row = once((head) => values?.row(head, query));
    const isHere = (head: number) => values && head < values.heads && (layer.held?.includes(head) ?? true);
    return (head: number, key: number) => (isHere(head) ? row(head)?.[key] : undefined);
  }
  return {
    /** A quantity of all heads of a layer of the chosen stack. */
    load: async (layer: PageLayer, quantity: PageQuantity) => asShown(await load(layer, null, quantity)),
    /** A layer of the chosen stack with one of its heads, as that stands in the page. */
    loadHead: async (layer: PageLayer, head: number) => asShown(await load(layer, [head])),
    /** What one query has with each key in each head of a layer; undefined where a page cannot tell. */
    async rowOf(layer: PageLayer, query: number, of: PageQuantity) {
      const words = merge.peek();
      if (!words) return pieceRow(layer, query, of);
      const { starts } = words.query;
      const pieces = Array.from({ length: starts[query + 1] - starts[query] }, (_, at) => starts[query] + at);
      const rows = await Promise.all(pieces.map((piece) => pieceRow(layer, piece, of)));
      return joinedRow(rows, words.key, of.name === "score");
    },
    /** A further record of the page by name, or its own, with the layers that were unpacked. */
    beside(name: string) {
      if (name === record) return origin.peek();
      const from = sourceBeside(origin.peek().given, name);
      const known = besides.get(name) ?? { source: from, layers: new LayerCache(from) };
      besides.set(name, known);
      return known;
    },
  };
}

/** Milliseconds between two tasks where the browser does not say when it has time (Safari): room for some frames. */
const PAUSE = 50;
/** Milliseconds after which a task is done in a page that always has something else to do. */
const LATEST = 1000;

const waiting: (() => void)[] = [];

/** Does a task when the page has nothing else to do: in order, and never two without a pause. */
export function whenIdle(task: () => void): void {
  if (waiting.push(task) === 1) soon();
}

function soon(): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(first, { timeout: LATEST });
  else setTimeout(first, PAUSE);
}

function first(): void {
  try {
    waiting[0]();
  } finally {
    waiting.shift();
    if (waiting.length > 0) soon();
  }
}
