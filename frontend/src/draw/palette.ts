import { DARK_HEADS, LIGHT_HEADS, NEGATIVE, POSITIVE } from "../contract/values";

/** Above 0 and below 0, in every picture of values that have both signs. */
export function signColors(dark: boolean): readonly [above: string, below: string] {
  return [POSITIVE[dark ? 1 : 0], NEGATIVE[dark ? 1 : 0]];
}

/** As many heads have colours that can be told apart. */
export const MOST_COLORS = 32;

/** One colour for each head; beyond 32 heads colours are used again. */
export function headColors(heads: number, dark: boolean): string[] {
  const colors = (dark ? DARK_HEADS : LIGHT_HEADS)[heads <= 12 ? 12 : heads <= 16 ? 16 : 32].split(" ");
  return Array.from({ length: heads }, (_, head) => colors[head % colors.length]);
}
