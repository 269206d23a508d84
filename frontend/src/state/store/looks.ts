import { computed } from "@preact/signals-core";
import { parseHex } from "../../draw/color";
import { kindColor, kindRamp } from "../../draw/kinds";
import { signColors } from "../../draw/palette";
import { signedRamp } from "../../draw/ramps";
import { kindOf } from "../kinds";
import { numberPair, toldText, WEIGHT_FACTS } from "../quantity";
import type { Chosen } from "./chosen";
import type { Loading } from "./loading";
import type { Opened } from "./opened";
import type { TokenState } from "./tokens";

export type Looks = ReturnType<typeof looksState>;

/** The heads that are drawn, what of them, and in which colours. */
export function looksState(
  { dark }: Chosen,
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
    return on.length > 0 ? on : Array.from({ length: count }, (_, head) => head).filter(isHere);
  });
  /** Each head of the layer has the colour of what it does. */
  const palette = computed(() => {
    const numbers = nowStack.value.head_numbers;
    const known = kinds.value;
    const row = nowStack.value.layers.findIndex(({ layer }) => layer === layerNumber.value) * numbers.length;
    return numbers.map((_, head) => kindColor((known && kindOf(known, row + head)) ?? "none", dark.value));
  });
  const inks = computed(() => palette.value.map(parseHex));
  const quantity = computed(() => shown.value?.quantity ?? WEIGHT_FACTS);
  /** How a value is printed that even attention would make so large. */
  const told = computed(() => toldText(quantity.value, nowStack.value.key.labels.length));
  const numbers = computed(() => numberPair(quantity.value, nowStack.value.key.labels.length));
  /** From paper to the colour of what the shown head does; of numbers of both signs to two colours. */
  const ramp = computed(() => {
    if (quantity.value.signed) return signedRamp(dark.value);
    const kind = kinds.value && kindOf(kinds.value, full.value);
    return kindRamp(kind ?? "resting", dark.value);
  });
  /** Where the maps that are drawn stand: those of the chosen heads, or the one that the layer has. */
  const maps = computed(() => (quantity.value.per === "layer" ? [0] : heads.value));
  const mapColors = computed(() =>
    quantity.value.per === "layer"
      ? [kindColor("resting", dark.value)]
      : heads.value.map((head) => palette.value[head]),
  );
  /** The colours of lines: of each map, or of both signs. */
  const lineInks = computed(() =>
    (quantity.value.signed ? signColors(dark.value) : mapColors.value).map((hex) => parseHex(hex)),
  );
  return { shownStack, nowStack, heads, palette, ramp, inks, quantity, told, numbers, maps, mapColors, lineInks };
}
