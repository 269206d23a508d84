import { computed } from "@preact/signals-core";
import { type TokenAttention, tokenAttention } from "../../draw/focus";
import { evenReceived } from "../../draw/lift";
import { filterMask, type Mask, muteSpecial, withoutSinks } from "../../draw/mask";
import type { Focus, Side } from "../../draw/place";
import { affordableStep, drawn, type HeadShares, headShares, SHARES } from "../../draw/share";
import type { LayerValues } from "../../draw/values";
import type { Chosen, Hover } from "./chosen";
import type { Looks } from "./looks";
import type { TokenState } from "./tokens";
import type { Weights } from "./weights";

/** More lines than this are drawn only on request: they would make a layer change slow. */
export const LINE_BUDGET = 30_000;

/** And more lines than this for each query cannot be told apart. */
export const LINES_A_TOKEN = 10;

/** Lines of both signs are more, and grey sooner. */
const SIGNED_BUDGET = 1500;

/** Which tokens take part, what those in focus have, and how much of all is drawn. */
export function attentionState(
  { part, hover }: Chosen,
  { pins }: TokenState,
  { shownStack, nowStack, quantity, maps }: Looks,
  { keepSinks, sinks, values, even }: Weights,
) {
  const [filter, mute, share, pinned] = [part("filter"), part("hide_special"), part("top_percent"), part("pinned")];
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
  /** What the tokens in focus have of the chosen quantity. */
  const attention = computed((): TokenAttention | null =>
    values.value && mask.value && focus.value
      ? tokenAttention(values.value, maps.value, mask.value, focus.value, pinned.value)
      : null,
  );
  const evenOfAll = computed(() => (even.value && mask.value ? evenReceived(even.value, mask.value) : NONE));
  /** What even attention would give where `attention` is told, or to each key where no token is in focus. */
  const evenAttention = computed((): Float32Array => {
    if (!even.value || !mask.value || !focus.value) return evenOfAll.value;
    return tokenAttention(even.value, [0], mask.value, focus.value, pinned.value).mean;
  });
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
  return { mask, focus, attention, evenOfAll, evenAttention, pair, sharesOf, step, summary, mutedPart };
}

const NONE = new Float32Array();

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
