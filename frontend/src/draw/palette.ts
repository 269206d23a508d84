import { NEGATIVE, POSITIVE } from "../contract/values";

/** Above 0 and below 0, in every picture of values that have both signs. */
export function signColors(dark: boolean): readonly [above: string, below: string] {
  return [POSITIVE[dark ? 1 : 0], NEGATIVE[dark ? 1 : 0]];
}
