import { computed, effect, type ReadonlySignal, signal } from "@preact/signals-core";
import type { PageStack, PageTokens } from "../../contract/page";
import { liftOf } from "../../draw/lift";
import { contrastPatch, isPicture, type Raster } from "../../draw/patches";
import type { LayerValues } from "../../draw/values";
import { WEIGHT_FACTS } from "../quantity";
import type { asking } from "./loading";

/** What one patch of a picture looks at in every head, as multiples of the even share. */
export interface PatchRows {
  readonly query: number;
  readonly tokens: PageTokens;
  readonly raster: Raster;
  /** Of each head one for each key; empty where they are still to come. */
  readonly lifts: readonly Float32Array[];
}

interface Given {
  readonly stack: ReadonlySignal<PageStack>;
  readonly pins: ReadonlySignal<{ readonly query: readonly number[] }>;
  readonly even: ReadonlySignal<LayerValues | null>;
  readonly pictures: ReadonlySignal<readonly (readonly Raster[])[]>;
  readonly rowOf: ReturnType<typeof asking>["rowOf"];
  readonly fail: (error: unknown) => void;
}

/** The rows of the pinned patch, or of the one with most contrast; null where tokens are no patches of one picture. */
export function patchState({ stack, pins, even, pictures, rowOf, fail }: Given) {
  const patchRows = signal<PatchRows | null>(null);
  const chosen = computed(() => {
    const { query, key } = stack.value;
    const rasters = pictures.value[0] ?? [];
    return isPicture(query) && isPicture(key) && rasters.length === 1
      ? (pins.value.query[0] ?? contrastPatch(query, rasters))
      : null;
  });
  const stop = effect(() => {
    const [query, shares] = [chosen.value, even.value];
    if (query === null || !shares) patchRows.value = null;
    else load(stack.value, query, shares.row(0, query)).catch(fail);
  });
  async function load(of: PageStack, query: number, shares: Float32Array): Promise<void> {
    const lifts: Float32Array[] = [];
    for (const layer of of.layers) {
      const row = await rowOf(layer, query, WEIGHT_FACTS);
      if (chosen.peek() !== query || stack.peek() !== of) return;
      for (let head = 0; head < of.heads; head++)
        lifts.push(shares.map((share, key) => liftOf(row(head, key) ?? 0, share)));
    }
    patchRows.value = { query, tokens: of.key, raster: pictures.peek()[0][0], lifts };
  }
  return { patchRows, stop };
}
