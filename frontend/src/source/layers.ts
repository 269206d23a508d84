import type { PageLayer, PageStack } from "../contract/page";
import type { LayerWeights } from "../draw/weights";
import { PageError } from "./errors";
import type { Source } from "./source";

const MOST_BYTES = 96 * 2 ** 20;
/** The shown layer and its two neighbours stay, however large. */
const FEWEST_LAYERS = 3;

/** Weights of layers, unpacked when asked for and kept while there is room (least recently used goes first). */
export class LayerCache {
  readonly #source: Source;
  readonly #mostBytes: number;
  readonly #kept = new Map<string, Promise<LayerWeights>>();
  readonly #sizes = new Map<string, number>();

  constructor(source: Source, mostBytes = MOST_BYTES) {
    this.#source = source;
    this.#mostBytes = mostBytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  load(stack: PageStack, layer: PageLayer): Promise<LayerWeights> {
    const name = layer.weights.chunk;
    const weights = this.#kept.get(name) ?? this.#fetch(stack, layer);
    this.#kept.delete(name);
    this.#kept.set(name, weights);
    return weights;
  }

  async #fetch(stack: PageStack, layer: PageLayer): Promise<LayerWeights> {
    const name = layer.weights.chunk;
    try {
      const weights = decodeLayer(stack, layer, await this.#source.chunk(name));
      this.#sizes.set(name, weights.bytes.length);
      this.#makeRoom();
      return weights;
    } catch (error) {
      this.#kept.delete(name);
      throw error;
    }
  }

  #makeRoom(): void {
    let total = 0;
    for (const size of this.#sizes.values()) total += size;
    for (const name of this.#kept.keys()) {
      if (total <= this.#mostBytes || this.#kept.size <= FEWEST_LAYERS) return;
      total -= this.#sizes.get(name) ?? 0;
      this.#sizes.delete(name);
      this.#kept.delete(name);
    }
  }
}

export function decodeLayer(stack: PageStack, { layer, weights }: PageLayer, bytes: Uint8Array): LayerWeights {
  const [heads, queries, keys] = weights.shape as [number, number, number];
  if (bytes.length !== heads * queries * keys) {
    throw new PageError(
      `Layer ${layer} of “${stack.name}” holds ${bytes.length} weights; ${heads} heads × ${queries} queries × ` +
        `${keys} keys need ${heads * queries * keys}. The file is damaged. Write it again.`,
    );
  }
  return { bytes, heads, queries, keys };
}
