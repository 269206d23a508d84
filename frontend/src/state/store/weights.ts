import { computed } from "@preact/signals-core";
import { SINK_PART, SINK_TIMES } from "../../../contract/values";
import { parseHex, signColors, signedRamp } from "../../draw/color";
import { kindColor, kindRamp } from "../../draw/kinds";
import { drawnOf, everyLine, leastLevel } from "../../draw/lines";
import { type Focus, filterMask, type Mask, muteSpecial, type Side } from "../../draw/tokens";
import { evenReceived, type LayerValues, largest, received, tokenAttention } from "../../draw/values";
import { type LayerWeights, toByte, withoutKeys } from "../../draw/weights";
import { kindAt, kindOf } from "../kinds";
import { isShare, numberPair, WEIGHT_FACTS } from "../quantity";
import type { Chosen, Hover, TokenState } from "./chosen";
import type { Opened } from "./heads";
import type { Loading } from "./loading";

export type Looks = ReturnType<typeof looksState>;

/** The head that is drawn, what of it, and in which colours. */
export function looksState({ dark }: Chosen, { stack }: TokenState, { kinds, full }: Opened, { shown }: Loading) {
  const shownStack = computed(() => shown.value?.stack ?? null);
  const nowStack = computed(() => shownStack.value ?? stack.value);
  /** The head that is shown, as it stands in its layer; while that comes, one of the layer that is still there. */
  const head = computed(() => {
    const here = shown.value?.here;
    const wanted = full.value % nowStack.value.heads;
    return !here || here.has(wanted) ? wanted : ([...here][0] ?? wanted);
  });
  const color = computed(() => {
    return kindColor(kindAt(kinds.value, full.value), dark.value);
  });
  const quantity = computed(() => shown.value?.quantity ?? WEIGHT_FACTS);
  /** How a value is printed that even attention would make so large, and what stands pale beside it. */
  const numbers = computed(() => numberPair(quantity.value, nowStack.value.key.labels.length));
  /** From paper to the colour of what the shown head does; of numbers of both signs to two colours. */
  const ramp = computed(() => {
    if (quantity.value.signed) return signedRamp(dark.value);
    const kind = kinds.value && kindOf(kinds.value, full.value);
    return kindRamp(kind ?? "resting", dark.value);
  });
  /** Where the map that is drawn stands: that of the head, or the one that the layer has. */
  const map = computed(() => (quantity.value.per === "layer" ? 0 : head.value));
  const mapColor = computed(() => (quantity.value.per === "layer" ? kindColor("resting", dark.value) : color.value));
  /** The colours of lines: that of the map, or of both signs. */
  const lineInks = computed(() => (quantity.value.signed ? signColors(dark.value) : [mapColor.value]).map(parseHex));
  return { shownStack, nowStack, head, color, ramp, quantity, numbers, map, mapColor, lineInks };
}

export type Weights = ReturnType<typeof weightState>;

/** The numbers that are shown: weights with or without sinks, or another quantity. */
export function weightState({ part }: Chosen, { shown }: Loading, { head, quantity }: Looks) {
  const keepSinks = part("sinks");
  /** What the shown head gives to each key. */
  const overall = computed(() => {
    // All of a long text at once takes seconds.
    if (!shown.value || shown.value.stack.sentences) return null;
    return received(shown.value.weights, head.value, filterMask(shown.value.stack, "all"));
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
  return { keepSinks, overall, sinks, weights, even, values, valueNorms };
}

/** Keys that take most of the mass, whatever they are called; the strongest first. */
export function findSinks(mean: Float32Array) {
  const total = mean.reduce((sum, weight) => sum + weight, 0) || 1;
  const least = Math.max(SINK_PART, SINK_TIMES / mean.length);
  return Array.from(mean, (weight, key) => ({ key, part: weight / total }))
    .filter(({ part }) => part >= least)
    .sort((a, b) => b.part - a.part);
}

/** Which tokens take part, what those in focus have, and how much of all is drawn. */
export function attentionState(
  { part, hover }: Chosen,
  { pins }: TokenState,
  { shownStack, quantity, map }: Looks,
  { keepSinks, sinks, values, even }: Weights,
) {
  const [filter, mute, pinned] = [part("filter"), part("hide_special"), part("pinned")];
  const unmuted = computed(() => {
    if (!shownStack.value) return null;
    const mask = filterMask(shownStack.value, filter.value);
    if (keepSinks.value) return mask;
    const left = sinks.value.map(({ key }) => key);
    return { ...mask, key: mask.key.map((shown, token) => (left.includes(token) ? 0 : shown)) };
  });
  const mask = computed(() =>
    unmuted.value && shownStack.value && mute.value ? muteSpecial(unmuted.value, shownStack.value) : unmuted.value,
  );
  const focus = computed(() => focusIn(pins.value, mask.value) ?? focusIn(asLists(hover.value), mask.value));
  /** What the tokens in focus have of the chosen quantity. */
  const attention = computed((): Float32Array | null =>
    values.value && mask.value && focus.value
      ? tokenAttention(values.value, map.value, mask.value, focus.value, pinned.value)
      : null,
  );
  const evenOfAll = computed(() => (even.value && mask.value ? evenReceived(even.value, mask.value) : NONE));
  /** What even attention would give where `attention` is told, or to each key where no token is in focus. */
  const evenAttention = computed((): Float32Array => {
    if (!even.value || !mask.value || !focus.value) return evenOfAll.value;
    return tokenAttention(even.value, 0, mask.value, focus.value, pinned.value);
  });
  /** What every key receives, as mean over the queries. */
  const receivedOfAll = computed(() =>
    values.value && mask.value ? received(values.value, map.value, mask.value) : null,
  );
  /** The pinned query and the key that it is looked at with: pinned too, or else the strongest that is no special token. */
  const pinnedPair = computed((): Record<Side, number> | null => {
    const [query] = pins.value.query;
    const weights = values.value;
    if (query === undefined || !weights || query >= weights.queries) return null;
    const row = weights.row(map.value, query);
    const special = shownStack.value?.key.special ?? [];
    const words = row.map((value, key) => (special[key] ? Number.NEGATIVE_INFINITY : value));
    return { query, key: pins.value.key[0] ?? words.indexOf(Math.max(...words)) };
  });
  /** The query and the key that are looked at together: pinned, or else under the pointer. */
  const pair = computed((): Record<Side, number | null> => {
    const at = (side: Side) => pins.value[side][0] ?? hover.value[side] ?? null;
    return { query: at("query"), key: at("key") };
  });

  /** The smallest level of each query that is drawn as a line: what is above its even share. */
  const cutoffs = computed(() => {
    const [now, given] = [values.value, mask.value];
    if (!now || !given) return new Uint16Array();
    const share = isShare(quantity.value) ? even.value : null;
    const least = leastLevel(now);
    return Uint16Array.from(given.query, (shown, query) => {
      if (!shown) return 256;
      return share ? toByte(largest(share.row(0, query))) + 1 : least;
    });
  });
  const summary = computed(() => {
    const [now, given] = [values.value, mask.value];
    return now && given ? drawnOf(now, map.value, given, cutoffs.value) : { lines: 0, mass: 0, part: 0 };
  });
  const mutedPart = computed(() => {
    const [now, given, all] = [values.value, mask.value, unmuted.value];
    if (!mute.value || !now || !given || !all) return 0;
    const massIn = (of: Mask) => drawnOf(now, map.value, of, everyLine(of)).mass;
    return 1 - massIn(given) / (massIn(all) || 1);
  });
  return { mask, focus, attention, receivedOfAll, evenAttention, pinnedPair, pair, cutoffs, summary, mutedPart };
}

const NONE = new Float32Array();

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
