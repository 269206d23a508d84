import { parseHex } from "../../draw/color";
import type { HeatColors } from "../../draw/heat";
import { type Level, pyramid, tileOf } from "../../draw/heat";
import { liftTile } from "../../draw/lift";
import { keyLooks, type Look, type LookRules, looksOf, paddedTokens } from "../../draw/looks";
import { pixelOf, stretched } from "../../draw/ramps";
import { isShare } from "../../state/quantity";
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

export function createPicture(store: Store): Picture | null {
  const [shown, values, mask] = [store.shown.value, store.values.value, store.mask.value];
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
  const even = store.even.value;
  const { signed } = store.quantity.value;
  const share = isShare(store.quantity.value) && even;
  const own = tileOf(values, store.map.value);
  const tile = share ? liftTile(own, even) : own;
  const levels = pyramid(tile, signed ? "signed" : "plain");
  if (signed || share) return { levels, colors: { ramp: store.ramp.value, ground, ink }, rules, looks, top: tile.top };
  const last = levels[levels.length - 1].bytes.reduce((a, b) => Math.max(a, b), 1);
  const ramp = stretched(store.ramp.value, last);
  return { levels, colors: { ramp, ground, ink }, rules, looks, top: tile.top * (last / 255) ** 2 };
}
