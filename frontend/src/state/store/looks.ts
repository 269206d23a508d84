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
    const known = kinds.value;
    return kindColor((known && kindOf(known, full.value)) ?? "none", dark.value);
  });
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
  /** Where the map that is drawn stands: that of the head, or the one that the layer has. */
  const map = computed(() => (quantity.value.per === "layer" ? 0 : head.value));
  const mapColor = computed(() => (quantity.value.per === "layer" ? kindColor("resting", dark.value) : color.value));
  /** The colours of lines: that of the map, or of both signs. */
  const lineInks = computed(() => (quantity.value.signed ? signColors(dark.value) : [mapColor.value]).map(parseHex));
  return { shownStack, nowStack, head, color, ramp, quantity, told, numbers, map, mapColor, lineInks };
}
