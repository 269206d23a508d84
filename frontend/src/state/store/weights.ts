import { computed } from "@preact/signals-core";
import type { PageStack } from "../../contract/page";
import { SINK_PART, SINK_TIMES } from "../../contract/values";
import { received } from "../../draw/focus";
import { everyToken } from "../../draw/mask";
import { type LayerValues, largest } from "../../draw/values";
import { type LayerWeights, withoutKeys } from "../../draw/weights";
import { WEIGHT_FACTS } from "../quantity";
import type { Chosen } from "./chosen";
import type { Loading } from "./loading";
import type { Looks } from "./looks";

export type Weights = ReturnType<typeof weightState>;

/** The numbers that are shown: weights with or without sinks, or another quantity. */
export function weightState({ part }: Chosen, { shown }: Loading, { head, quantity }: Looks) {
  const keepSinks = part("sinks");
  /** What the shown head gives to each key. */
  const overall = computed(() => {
    // All of a long text at once takes seconds.
    if (!shown.value || shown.value.stack.sentences) return null;
    return received(shown.value.weights, head.value, everyToken(shown.value.stack));
  });
  const sinks = computed(() => (overall.value ? findSinks(overall.value) : []));
  /** 0 for the keys that are left out; null where none is. */
  const kept = computed(() => {
    if (!shown.value || keepSinks.value || sinks.value.length === 0) return null;
    const all = new Uint8Array(shown.value.weights.keys).fill(1);
    for (const { key } of sinks.value) all[key] = 0;
    return all;
  });
  /** The weights as they are shown: without sinks and renormalised where the reader wants that. */
  const weights = computed((): LayerWeights | null => {
    return shown.value && kept.value ? withoutKeys(shown.value.weights, kept.value) : (shown.value?.weights ?? null);
  });
  /** What even attention gives, without sinks too. */
  const even = computed((): LayerWeights | null => {
    return shown.value && kept.value ? withoutKeys(shown.value.even, kept.value) : (shown.value?.even ?? null);
  });
  /** The two words that the shown head joins most: where the neuron view opens. */
  const words = computed(() => {
    const now = shown.value;
    return (
      now &&
      strongestWords(
        now.weights,
        head.value,
        now.stack,
        sinks.value.map(({ key }) => key),
      )
    );
  });
  /** The chosen quantity as it is shown; what is no weight is not renormalised. */
  const values = computed((): LayerValues | null =>
    quantity.value.name === WEIGHT_FACTS.name ? weights.value : (shown.value?.values.get(quantity.value.name) ?? null),
  );
  /** What each key adds when it has all the weight, in the shown head; null where it is not known. */
  const valueNorms = computed(() => {
    const norms = shown.value?.valueNorms;
    if (!norms || !shown.value) return null;
    const { keys } = shown.value.weights;
    const values = norms.slice(head.value * keys, (head.value + 1) * keys);
    return { values, most: largest(values) };
  });
  return { keepSinks, overall, sinks, weights, even, words, values, valueNorms };
}

interface Sink {
  readonly key: number;
  /** Part of all attention that it receives. */
  readonly part: number;
}

/** Keys that take most of the mass, whatever they are called; the strongest first. */
export function findSinks(mean: Float32Array): Sink[] {
  const total = mean.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return [];
  const least = Math.max(SINK_PART, SINK_TIMES / mean.length);
  return Array.from(mean, (weight, key) => ({ key, part: weight / total }))
    .filter(({ part }) => part >= least)
    .sort((a, b) => b.part - a.part);
}

/** Texts with more weights than this are not searched: that would be slow. */
const MOST_WEIGHTS = 2 ** 21;

/** The two different words with the largest weight of a head: no special tokens, and none of the keys left out. */
export function strongestWords(
  weights: LayerWeights,
  head: number,
  { query, key }: PageStack,
  leftOut: readonly number[],
): { query: number; key: number } {
  const { queries, keys } = weights;
  let found = { query: 0, key: 0 };
  if (queries * keys > MOST_WEIGHTS) return found;
  const bytes = weights.bytes(head);
  let most = 0;
  for (let from = 0; from < queries; from++) {
    for (let to = 0; to < keys; to++) {
      const byte = bytes[from * keys + to];
      if (byte <= most || query.special[from] || key.special[to] || leftOut.includes(to)) continue;
      if (from === to && query.pieces[from] === key.pieces[to]) continue;
      most = byte;
      found = { query: from, key: to };
    }
  }
  return found;
}
