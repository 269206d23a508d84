import { computed } from "@preact/signals-core";
import { parseHex } from "../../draw/color";
import { kindColor } from "../../draw/kinds";
import { headColors, MOST_COLORS, signColors } from "../../draw/palette";
import { kindOf } from "../kinds";
import { toldText, WEIGHT_FACTS } from "../quantity";
import type { Chosen } from "./chosen";
import type { Loading } from "./loading";
import type { Opened } from "./opened";
import type { TokenState } from "./tokens";

export type Looks = ReturnType<typeof looksState>;

/** The heads that are drawn, what of them, and in which colours. */
export function looksState(
  { view, dark }: Chosen,
  { stack }: TokenState,
  { kinds, full, layerNumber, wantedHeads, wantedKey }: Opened,
  { shown }: Loading,
) {
  const shownStack = computed(() => shown.value?.stack ?? null);
  const nowStack = computed(() => shownStack.value ?? stack.value);
  const heads = computed(() => {
    void wantedKey.value;
    const count = shown.value?.weights.heads ?? nowStack.value.heads;
    const here = shown.value?.here;
    const isHere = (head: number) => head < count && (here?.has(head) ?? true);
    const on = wantedHeads.peek().filter(isHere);
    // Neurons are those of one head.
    if (view.value === "neuron") return on.slice(0, 1);
    return on.length > 0 ? on : Array.from({ length: count }, (_, head) => head).filter(isHere);
  });
  const palette = computed(() => {
    const numbers = nowStack.value.head_numbers;
    const kind = full.value !== null && kinds.value && kindOf(kinds.value, full.value);
    // The overview colours by what a head does, all else by its number.
    if (full.value !== null) return numbers.map(() => kindColor(kind || "none", dark.value));
    const known = kinds.value;
    // So many colours cannot be told apart: a head has that of its kind.
    if (numbers.length > MOST_COLORS && known) {
      const row = known.stack.layers.findIndex(({ layer }) => layer === layerNumber.value) * known.stack.heads;
      return numbers.map((_, head) => kindColor(kindOf(known, row + head) ?? "none", dark.value));
    }
    const colors = headColors(Math.max(...numbers) + 1, dark.value);
    return numbers.map((number) => colors[number]);
  });
  const inks = computed(() => palette.value.map(parseHex));
  const quantity = computed(() => shown.value?.quantity ?? WEIGHT_FACTS);
  /** How a value is printed that even attention would make so large. */
  const told = computed(() => toldText(quantity.value, nowStack.value.key.labels.length));
  /** Where the maps that are drawn stand: those of the chosen heads, or the one that the layer has. */
  const maps = computed(() => (quantity.value.per === "layer" ? [0] : heads.value));
  const mapColors = computed(() =>
    quantity.value.per === "layer" ? [signColors(dark.value)[0]] : heads.value.map((head) => palette.value[head]),
  );
  /** The colours of lines: of each map, or of both signs. */
  const lineInks = computed(() =>
    (quantity.value.signed ? signColors(dark.value) : mapColors.value).map((hex) => parseHex(hex)),
  );
  return { shownStack, nowStack, heads, palette, inks, quantity, told, maps, mapColors, lineInks };
}
