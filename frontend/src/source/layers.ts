import type { PageArray, PageLayer, PageQuantity, PageScores, PageStack } from "../contract/page";
import { type ScoreParts, scoreWeights, type Visible, visibleRuns } from "../draw/scores";
import { arrayValues, contributionValues, type LayerValues, scoreValues } from "../draw/values";
import { byteWeights, type LayerWeights } from "../draw/weights";
import { arraySize, checkedBytes, decoded, floats, integers } from "./arrays";
import type { Source } from "./source";

const MOST_BYTES = 96 * 2 ** 20;
/** The shown layer and its two neighbours stay, however large. */
const FEWEST_LAYERS = 3;

/** What a page holds of one layer, unpacked. */
export interface LoadedLayer {
  readonly weights: LayerWeights;
  /** Null where the page has no queries and keys of this layer. */
  readonly scores: ScoreParts | null;
  readonly visible: Visible | null;
  /** Axes head, key: the length of what a key adds when it has all of a head's weight. */
  readonly valueNorms: Float32Array | null;
  /** What can be shown in place of the weights, by name; what travels as an array is there once it was asked for. */
  readonly values: Map<string, LayerValues>;
}

/** Layers, unpacked when asked for and kept while there is room (least recently used goes first). */
export class LayerCache {
  readonly #source: Source;
  readonly #mostBytes: number;
  readonly #kept = new Map<PageLayer, Promise<LoadedLayer>>();

  constructor(source: Source, mostBytes = MOST_BYTES) {
    this.#source = source;
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  load(stack: PageStack, layer: PageLayer, quantity?: PageQuantity): Promise<LoadedLayer> {
    const loaded = this.#kept.get(layer) ?? this.#fetch(stack, layer);
    this.#kept.delete(layer);
    this.#kept.set(layer, loaded);
    this.#makeRoom(stack);
    return quantity && layer.quantities?.[quantity.name] ? this.#withValues(loaded, layer, quantity) : loaded;
  }

  async #withValues(loading: Promise<LoadedLayer>, layer: PageLayer, quantity: PageQuantity): Promise<LoadedLayer> {
    const loaded = await loading;
    const array = layer.quantities?.[quantity.name];
    if (!array || loaded.values.has(quantity.name)) return loaded;
    const numbers = decoded(array, await this.#source.chunk(array.chunk));
    const [heads, queries, keys] = array.shape.length === 2 ? [1, ...array.shape] : array.shape;
    loaded.values.set(quantity.name, arrayValues(numbers, { heads, queries, keys }, quantity.signed));
    return loaded;
  }

  async #fetch(stack: PageStack, layer: PageLayer): Promise<LoadedLayer> {
    try {
      return await loadLayer(this.#source, stack, layer);
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

/** What a layer takes when its heads have been drawn. */
function bytesOf({ heads, query, key }: PageStack, { scores, quantities = {} }: PageLayer): number {
  const pictures = heads * query.labels.length * key.labels.length;
  const further = Object.values(quantities).reduce((sum, array) => sum + 5 * arraySize(array), 0);
  return pictures + further + (scores ? 4 * (arraySize(scores.queries) + arraySize(scores.keys)) : 0);
}

async function loadLayer(source: Source, stack: PageStack, layer: PageLayer): Promise<LoadedLayer> {
  const queries = stack.query.labels.length;
  const keys = stack.key.labels.length;
  const fetched = async (array: PageArray) => source.chunk(array.chunk);
  const visible = layer.visible && visibleRuns(integers(layer.visible, await fetched(layer.visible)), queries);
  const scores = layer.scores && (await loadScores(source, layer.scores, { queries, keys, visible }));
  const weights = await loadWeights(source, layer, { queries, keys }, scores);
  const norms = layer.value_norms && floats(layer.value_norms, await fetched(layer.value_norms));
  const values = new Map<string, LayerValues>([["weight", weights]]);
  if (scores) values.set("score", scoreValues(scores));
  if (norms) values.set("contribution", contributionValues(weights, norms));
  return { weights, scores, visible, valueNorms: norms ?? null, values };
}

async function loadWeights(
  source: Source,
  { layer, weights }: PageLayer,
  sizes: { queries: number; keys: number },
  scores: ScoreParts | null,
): Promise<LayerWeights> {
  if (weights) {
    const bytes = checkedBytes(weights, await source.chunk(weights.chunk));
    return byteWeights(bytes, { heads: weights.shape[0], ...sizes });
  }
  if (!scores) throw new Error(`layer ${layer} has neither weights nor scores`);
  return scoreWeights(scores);
}

type Sizes = Pick<ScoreParts, "queries" | "keys" | "visible">;

async function loadScores(source: Source, page: PageScores, sizes: Sizes): Promise<ScoreParts> {
  const load = async (array: PageArray) => floats(array, await source.chunk(array.chunk));
  const [query, key, bias] = await Promise.all([load(page.queries), load(page.keys), page.bias && load(page.bias)]);
  const [heads, , features] = page.queries.shape;
  return {
    ...sizes,
    heads,
    features,
    query,
    key,
    kvHeads: page.keys.shape[0],
    scale: page.scale,
    softCap: page.soft_cap,
    bias: page.bias && bias && { values: bias, heads: page.bias.shape[0], byOffset: page.bias.shape.length === 2 },
    sinks: page.sinks,
  };
}
