import type { Focus } from "../../draw/columns";
import { exposure, ink } from "../../draw/ink";
import { collectLines, everyLine, type LineOptions } from "../../draw/lines";
import type { Mask } from "../../draw/mask";
import { codeOf, largest, topOf } from "../../draw/values";
import { putPixels } from "../../parts/useWidth";
import { FEW_QUERIES } from "../../state/places";
import type { Store } from "../../state/store";
import type { Layout } from "./geometry";

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
  const [values, mask] = [store.values.value, store.mask.value];
  const { width } = layout.lineArea.value;
  if (!values || !mask || width === 0) return false;
  const lineWidth = 1.9;
  const gain = exposure({
    mass: store.summary.value.mass / topOf(values, store.map.value),
    lineWidth,
    height: layout.geometry.value.longest,
    aim: store.dark.value ? AIM.dark : AIM.light,
    most: 2.8,
  });
  // So many lines at once are one grey surface: then those of a token alone.
  const many = values.queries >= FEW_QUERIES;
  const cutoffs = many ? everyLine(mask, 256) : store.cutoffs.value;
  paint(canvas, store, layout, { lineWidth, gain, gamma: 1 }, { mask, cutoffs });
  return true;
}

/** Draws all lines of one token, the strongest always equally dark. */
export function paintToken(canvas: HTMLCanvasElement, store: Store, layout: Layout, only: Focus): void {
  const [values, mask, attention] = [store.values.value, store.mask.value, store.attention.value];
  if (!values || !mask || !attention || layout.lineArea.value.width === 0) return;
  const gamma = 0.85;
  const most = largest(attention) / topOf(values, store.map.value);
  const gain = Math.min(12, 2.2 / most ** gamma);
  const visible = codeOf(values).sizes.findIndex((size) => gain * size ** gamma >= FAINTEST);
  const cutoffs = store.cutoffs.value.map((least) => Math.max(least, visible));
  paint(canvas, store, layout, { lineWidth: 2, gain, gamma }, { mask, cutoffs, only });
}

interface Choice {
  readonly mask: Mask;
  readonly cutoffs: Uint16Array;
  readonly only?: Focus;
}

function paint(canvas: HTMLCanvasElement, store: Store, layout: Layout, pen: Pen, choice: Choice): void {
  const { width, density } = layout.lineArea.value;
  const values = store.values.value;
  if (!values) return;
  const options = lineOptions(layout, pen, choice);
  const lines = collectLines(values, store.map.value, options);
  const size = { width: Math.round(width * density), height: Math.round(options.height) };
  const pixels = ink(lines, store.lineInks.value, { ...size, lineWidth: pen.lineWidth * density });
  putPixels(canvas, pixels, size);
}

/** Everything in device pixels. */
function lineOptions(layout: Layout, pen: Pen, choice: Choice): LineOptions {
  const { density } = layout.lineArea.value;
  const { height, query, key } = layout.geometry.value;
  const scaled = (column: typeof query) => ({ ...column, pitch: column.pitch * density, top: column.top * density });
  return {
    ...choice,
    height: height * density,
    query: scaled(query),
    key: scaled(key),
    reach: pen.lineWidth * density,
    gain: pen.gain,
    gamma: pen.gamma,
  };
}
