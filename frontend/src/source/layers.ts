import type { PageArray, PageLayer, PageScores, PageStack } from "../contract/page";
import { type ScoreParts, scoreWeights, type Visible, visibleRuns } from "../draw/scores";
import { byteWeights, type LayerWeights } from "../draw/weights";
import { arraySize, checkedBytes, floats, integers } from "./arrays";
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

  load(stack: PageStack, layer: PageLayer): Promise<LoadedLayer> {
    const loaded = this.#kept.get(layer) ?? this.#fetch(stack, layer);
    this.#kept.delete(layer);
    this.#kept.set(layer, loaded);
    this.#makeRoom(stack);
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
function bytesOf({ heads, query, key }: PageStack, { scores }: PageLayer): number {
  const pictures = heads * query.labels.length * key.labels.length;
  return pictures + (scores ? 4 * (arraySize(scores.queries) + arraySize(scores.keys)) : 0);
}

async function loadLayer(source: Source, stack: PageStack, layer: PageLayer): Promise<LoadedLayer> {
  const queries = stack.query.labels.length;
  const keys = stack.key.labels.length;
  const fetched = async (array: PageArray) => source.chunk(array.chunk);
  const visible = layer.visible && visibleRuns(integers(layer.visible, await fetched(layer.visible)), queries);
  const scores = layer.scores && (await loadScores(source, layer.scores, { queries, keys, visible }));
  if (!layer.weights) {
    if (!scores) throw new Error(`layer ${layer.layer} has neither weights nor scores`);
    return { weights: scoreWeights(scores), scores, visible };
  }
  const bytes = checkedBytes(layer.weights, await fetched(layer.weights));
  return { weights: byteWeights(bytes, { heads: layer.weights.shape[0], queries, keys }), scores, visible };
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
