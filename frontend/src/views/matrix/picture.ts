import { parseHex } from "../../draw/color";
import type { HeatColors } from "../../draw/heat";
import { keyLooks, type Look, type LookRules, looksOf, paddedTokens } from "../../draw/looks";
import { type Level, pyramid } from "../../draw/pyramid";
import { pixelOf, signedRamp, stretched, weightRamp } from "../../draw/ramps";
import { scoreTile, weightTile } from "../../draw/tiles";
import type { Store } from "../../state/store";

/** All that a matrix is drawn from. */
export interface Picture {
  readonly levels: readonly Level[];
  readonly colors: HeatColors;
  readonly rules: LookRules;
  /** The looks without colour that occur. */
  readonly looks: readonly Look[];
  /** For weights: the one that has the darkest colour. */
  readonly top: number;
  /** For scores: what the ends of the scale stand for; null for weights. */
  readonly most: number | null;
}

const EMPTY = { light: ["#eceff3", "#b9c0ca"], dark: ["#1a1e25", "#454d59"] };

export function createPicture(store: Store, stretch: boolean): Picture | null {
  const [shown, weights, mask, heads] = [store.shown.value, store.weights.value, store.mask.value, store.heads.value];
  if (!shown || !weights || !mask) return null;
  const dark = store.dark.value;
  const { stack, layer, visible } = shown;
  const rules: LookRules = {
    queries: weights.queries,
    keys: weights.keys,
    visible,
    sliding: layer.kind === "sliding",
    query: mask.query,
    keyLooks: keyLooks(paddedTokens(stack.key.pieces, stack.key.special), mask.key),
  };
  const looks = looksOf(rules);
  const [ground, ink] = EMPTY[dark ? "dark" : "light"].map((hex) => pixelOf(parseHex(hex)));
  if (store.quantity.value === "score" && shown.scores) {
    const tile = scoreTile(shown.scores, heads[0]);
    return {
      levels: pyramid(tile, "signed"),
      colors: { ramp: signedRamp(dark), ground, ink },
      rules,
      looks,
      most: tile.most,
      top: 1,
    };
  }
  const levels = pyramid(weightTile(weights, heads), "plain");
  const topByte = stretch
    ? Math.max(
        1,
        levels[levels.length - 1].bytes.reduce((a, b) => Math.max(a, b), 0),
      )
    : 255;
  const ramp = stretched(weightRamp(dark), topByte);
  return { levels, colors: { ramp, ground, ink }, rules, looks, most: null, top: (topByte / 255) ** 2 };
}
