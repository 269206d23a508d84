import type { PageLayer, PageQuantity, PageStack } from "../contract/page";
import { arraySize } from "./arrays";
import { type LoadedLayer, type OpenLayer, openLayer, type WantedHeads } from "./layer";
import type { Source } from "./source";

const MOST_BYTES = 96 * 2 ** 20;
/** The shown layer and its two neighbours stay, however large. */
const FEWEST_LAYERS = 3;

/** Layers, unpacked when asked for and kept while there is room (least recently used goes first). */
export class LayerCache {
  readonly #source: Source;
  readonly #mostBytes: number;
  readonly #kept = new Map<PageLayer, Promise<OpenLayer>>();

  constructor(source: Source, mostBytes = MOST_BYTES) {
    this.#source = source;
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /**
   * A layer with at least these heads, by their position; with all of them where they come at once, and where none is
   * named; with null those that the quantity needs. A quantity that travels as an array comes only where it is asked for.
   */
  async load(
    stack: PageStack,
    layer: PageLayer,
    heads: WantedHeads = [],
    quantity?: PageQuantity,
  ): Promise<LoadedLayer> {
    const opened = this.#kept.get(layer) ?? openLayer(this.#source, stack, layer);
    this.#kept.delete(layer);
    this.#kept.set(layer, opened);
    this.#makeRoom(stack);
    try {
      return await (await opened)(heads, quantity);
    } catch (error) {
      this.#kept.delete(layer);
      throw error;
    }
  }

  #makeRoom(stack: PageStack): void {
    let total = 0;
    for (const layer of this.#kept.keys()) total += bytesOf(stack, layer);
    for (const layer of this.#kept.keys()) {
      if (total <= this.#mostBytes || this.#kept.size <= FEWEST_LAYERS) return;
      total -= bytesOf(stack, layer);
      this.#kept.delete(layer);
    }
  }
}

/** Quantities that need no array of their own. */
const WORKED_OUT = ["score", "contribution"];

/** What a layer takes when its heads have been drawn. */
function bytesOf({ heads, query, key }: PageStack, { scores, quantities = {}, has = [] }: PageLayer): number {
  const pictures = heads * query.labels.length * key.labels.length;
  const arrays = Object.values(quantities).reduce((sum, array) => sum + arraySize(array), 0);
  const further = 5 * (arrays + pictures * has.filter((name) => !WORKED_OUT.includes(name)).length);
  return pictures + further + (scores ? 4 * (arraySize(scores.queries) + arraySize(scores.keys)) : 0);
}
