import { computed } from "@preact/signals-core";
import type { Focus, Side } from "../../draw/columns";
import { received, tokenAttention } from "../../draw/focus";
import { evenReceived } from "../../draw/lift";
import { drawnOf, everyLine, leastLevel } from "../../draw/lines";
import { filterMask, type Mask, muteSpecial, withoutSinks } from "../../draw/mask";
import { largest } from "../../draw/values";
import { toByte } from "../../draw/weights";
import { isShare } from "../quantity";
import type { Chosen, Hover } from "./chosen";
import type { Looks } from "./looks";
import type { TokenState } from "./tokens";
import type { Weights } from "./weights";

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
