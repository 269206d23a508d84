import { exposure } from "../../draw/exposure";
import { strongestWeight } from "../../draw/focus";
import { ink } from "../../draw/ink";
import { collectLines, everyLine, type LineOptions } from "../../draw/lines";
import type { Mask } from "../../draw/mask";
import type { Focus } from "../../draw/place";
import { cutoffsAt } from "../../draw/share";
import { type LayerWeights, WEIGHT } from "../../draw/weights";
import { putPixels } from "../../parts/canvas";
import type { Store } from "../../state/store";
import type { Layout } from "./geometry";

/** Heads leave a token over this part of its height. */
const SPREAD = 0.62;
/** The mean coverage that auto exposure aims at; light on dark needs less. */
const AIM = { light: 0.68, dark: 0.55 };

/** Lines of a token that are fainter than one step of a screen are not drawn. */
const FAINTEST = 1 / 255;

interface Pen {
  readonly lineWidth: number;
  readonly gain: number;
  readonly gamma: number;
}

/** Draws all chosen lines; false where there is nothing to draw on or from yet. */
export function paintAll(canvas: HTMLCanvasElement, store: Store, layout: Layout): boolean {
  const [weights, mask] = [store.weights.value, store.mask.value];
  const { width } = layout.lineArea.value;
  if (!weights || !mask || width === 0) return false;
  const heads = store.heads.value;
  const lineWidth = heads.length === 1 ? 1.9 : 1.5;
  const gain = exposure({
    mass: store.summary.value.mass,
    lineWidth,
    height: layout.geometry.value.longest,
    aim: store.dark.value ? AIM.dark : AIM.light,
    most: 2.8,
  });
  const cutoffs = heads.map((head) => cutoffsAt(store.sharesOf.value(head), store.step.value));
  paint(canvas, store, layout, weights, { lineWidth, gain, gamma: 1 }, { mask, cutoffs });
  return true;
}

/** Draws all lines of one token, the strongest always equally dark. */
export function paintToken(canvas: HTMLCanvasElement, store: Store, layout: Layout, only: Focus): void {
  const [weights, mask, attention] = [store.weights.value, store.mask.value, store.attention.value];
  if (!weights || !mask || !attention || layout.lineArea.value.width === 0) return;
  const heads = store.heads.value;
  const gamma = 0.85;
  const most = strongestWeight(attention);
  const gain = Math.min(12, 2.2 / most ** gamma);
  const visible = WEIGHT.findIndex((weight) => gain * weight ** gamma >= FAINTEST);
  const every = everyLine(mask, Math.max(1, visible));
  const cutoffs = heads.map(() => every);
  paint(canvas, store, layout, weights, { lineWidth: 2, gain, gamma }, { mask, cutoffs, only });
}

interface Choice {
  readonly mask: Mask;
  readonly cutoffs: readonly Uint16Array[];
  readonly only?: Focus;
}

function paint(
  canvas: HTMLCanvasElement,
  store: Store,
  layout: Layout,
  weights: LayerWeights,
  pen: Pen,
  choice: Choice,
): void {
  const { width, density } = layout.lineArea.value;
  const heads = store.heads.value;
  const options = lineOptions(layout, pen, choice);
  const lines = collectLines(weights, heads, options);
  const size = { width: Math.round(width * density), height: Math.round(options.height) };
  const colors = heads.map((head) => store.inks.value[head]);
  const pixels = ink(lines, colors, { ...size, lineWidth: pen.lineWidth * density });
  putPixels(canvas, pixels, size);
}

/** Everything in device pixels. */
function lineOptions(layout: Layout, pen: Pen, choice: Choice): LineOptions {
  const { density } = layout.lineArea.value;
  const { height, pitch, query, key } = layout.geometry.value;
  const scaled = (column: typeof query) => ({ ...column, pitch: column.pitch * density, top: column.top * density });
  return {
    ...choice,
    height: height * density,
    query: scaled(query),
    key: scaled(key),
    spread: SPREAD * pitch * density,
    reach: pen.lineWidth * density,
    gain: pen.gain,
    gamma: pen.gamma,
  };
}
