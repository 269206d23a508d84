import { parseHex } from "../../draw/color";
import type { HeatColors } from "../../draw/heat";
import { keyLooks, type Look, type LookRules, looksOf, paddedTokens } from "../../draw/looks";
import { type Level, pyramid } from "../../draw/pyramid";
import { pixelOf, signedRamp, stretched, weightRamp } from "../../draw/ramps";
import { tileOf } from "../../draw/tiles";
import { toByte } from "../../draw/weights";
import type { Store } from "../../state/store";

/** All that a matrix is drawn from. */
export interface Picture {
  readonly levels: readonly Level[];
  readonly colors: HeatColors;
  readonly rules: LookRules;
  /** The looks without colour that occur. */
  readonly looks: readonly Look[];
  /** The value that has the last colour. */
  readonly top: number;
}

const EMPTY = { light: ["#eceff3", "#b9c0ca"], dark: ["#1a1e25", "#454d59"] };

export function createPicture(store: Store, stretch: boolean): Picture | null {
  const [shown, values, mask, maps] = [store.shown.value, store.values.value, store.mask.value, store.maps.value];
  if (!shown || !values || !mask) return null;
  const dark = store.dark.value;
  const { stack, layer, visible } = shown;
  const rules: LookRules = {
    queries: values.queries,
    keys: values.keys,
    visible,
    sliding: layer.kind === "sliding",
    query: mask.query,
    keyLooks: keyLooks(paddedTokens(stack.key.pieces, stack.key.special), mask.key),
  };
  const looks = looksOf(rules);
  const [ground, ink] = EMPTY[dark ? "dark" : "light"].map((hex) => pixelOf(parseHex(hex)));
  const { signed, even } = store.quantity.value;
  const tile = tileOf(values, maps);
  const levels = pyramid(tile, signed ? "signed" : "plain");
  if (signed) return { levels, colors: { ramp: signedRamp(dark), ground, ink }, rules, looks, top: tile.top };
  const strongest = levels[levels.length - 1].bytes.reduce((a, b) => Math.max(a, b), 1);
  // A weight is told by its part of 1; other scales have no end that means something.
  const last = stretch || values.free || even ? strongest : 255;
  // Of many keys the even share is as pale as nothing.
  const first = even ? Math.min(last - 1, toByte(even)) : 0;
  const ramp = stretched(weightRamp(dark), last, first);
  return { levels, colors: { ramp, ground, ink }, rules, looks, top: tile.top * (last / 255) ** 2 };
}
