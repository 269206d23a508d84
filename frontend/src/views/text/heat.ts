import { signedByte } from "../../draw/ramps";
import type { Heat } from "./TextView";

/** The colour of a value: from nothing, or from the even share where weights are told as multiples of it, to the largest. */
export function heatByte(value: number, { most, facts }: Pick<Heat, "most" | "facts">): number {
  if (facts.signed) return Number.isFinite(value) ? signedByte(value, most) : 128;
  const from = facts.even ?? 0;
  return Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, (value - from) / (most - from)))));
}
