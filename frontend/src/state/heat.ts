import { heatByte, kindRamp } from "../draw/kinds";
import { type Ramp, weightRamp } from "../draw/ramps";
import type { LoadedKinds } from "../source/kinds";
import { kindOf, NUMBER_NAMES, numbersOf } from "./kinds";
import type { Selection } from "./selection";

export type Measure = Selection["measure"];

/** What each measure of the heat map of heads is called. */
export const MEASURE_WORDS: Readonly<Record<string, string>> = {
  kind: "what it does",
  ...NUMBER_NAMES,
};

/** The colour of each head where one colour stands for all of it; numbered as thumbnails are. */
export function headHeat(kinds: LoadedKinds, measure: Measure, dark: boolean): (head: number) => number {
  if (measure === "kind") {
    const ramps = new Map<string, Ramp>();
    return (head) => {
      const kind = kindOf(kinds, head) ?? "none";
      const ramp = ramps.get(kind) ?? kindRamp(kind, dark);
      ramps.set(kind, ramp);
      return ramp[heatByte(kind, numbersOf(kinds, head)("score") || 0)];
    };
  }
  const [ramp, most] = [weightRamp(dark), mostOf(kinds, measure)];
  return (head) => {
    const value = numbersOf(kinds, head)(measure);
    return ramp[Number.isFinite(value) ? Math.round((255 * Math.max(0, value)) / most) : 0];
  };
}

/** What the last colour stands for: the whole of a share, or the largest count there is. */
export function mostOf(kinds: LoadedKinds, measure: Measure): number {
  if (measure !== "keys") return 1;
  const heads = kinds.values.length / kinds.said.columns.length;
  return Array.from({ length: heads }, (_, head) => numbersOf(kinds, head)(measure)).reduce(
    (most, value) => (value > most ? value : most),
    1,
  );
}
