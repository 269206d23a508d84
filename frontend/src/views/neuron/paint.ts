import { type Ramp, signedRamp } from "../../draw/ramps";
import type { NeuronTable } from "./table";

/** Height of a key's row, in CSS pixels: room for a finger where there is one. */
export const PITCH = globalThis.matchMedia?.("(pointer: coarse)").matches ? 32 : 22;

export interface Sizes {
  /** Width of one neuron. */
  readonly cell: number;
  /** Where the two bands of neurons begin. */
  readonly bands: readonly [keys: number, products: number];
  readonly gap: number;
  readonly width: number;
  readonly height: number;
  /** The rows that are seen. */
  readonly first: number;
  readonly end: number;
  /** How far the rows are scrolled. */
  readonly offset: number;
}

export const NAME = 112;
/** Width of all that stands right of the neurons. */
const NUMBERS = { wide: 60 + 52 + 88, narrow: 44 + 54 + 60 };
/** Width of the view below which they stand closer. */
const NARROW = 540;
const GAP = 14;
const LARGEST_CELL = 16;
/** Keys that the query may not look at are so many times fainter. */
const MASKED = 4;

export function layoutOf(width: number, features: number): Pick<Sizes, "cell" | "bands" | "gap" | "width"> {
  const free = width - NAME - NUMBERS[width < NARROW ? "narrow" : "wide"] - 4 * GAP;
  const cell = Math.max(1, Math.min(LARGEST_CELL, free / (2 * features)));
  return { cell, bands: [NAME, NAME + cell * features + GAP], gap: GAP, width };
}

interface Band {
  readonly left: number;
  readonly top: number;
  readonly height: number;
  readonly values: Float32Array;
  readonly most: number;
}

/** The rows of neurons that are seen, with the query above them. */
export function neuronPixels(table: NeuronTable, sizes: Sizes, scale: number, dark: boolean, heading: number) {
  const width = Math.round((sizes.bands[1] + sizes.cell * table.features) * scale);
  const height = Math.round((sizes.height + heading) * scale);
  const pixels = new Uint32Array(Math.max(1, width) * Math.max(1, height));
  const ramp = signedRamp(dark);
  const draw = (band: Band) => drawBand(pixels, { width, height }, band, table.order, sizes.cell, scale, ramp, heading);
  const [keys, products] = sizes.bands;
  for (let key = sizes.first; key < sizes.end; key++) {
    const top = heading + key * PITCH - sizes.offset;
    const weaker = table.scores[key] === Number.NEGATIVE_INFINITY ? MASKED : 1;
    draw({ left: keys, top, height: PITCH, values: table.keyAt(key), most: weaker * table.most.k });
    draw({ left: products, top, height: PITCH, values: table.productAt(key), most: weaker * table.most.product });
  }
  drawBand(
    pixels,
    { width, height },
    { left: keys, top: heading - PITCH - 6, height: PITCH, values: table.q, most: table.most.q },
    table.order,
    sizes.cell,
    scale,
    ramp,
    0,
  );
  return { pixels: new Uint8ClampedArray(pixels.buffer), width: Math.max(1, width), height: Math.max(1, height) };
}

/** Faint numbers stay visible: a colour is as strong as this power of a number's part of the maximum. */
const POWER = 0.7;

function drawBand(
  pixels: Uint32Array,
  { width, height }: { width: number; height: number },
  band: Band,
  order: readonly number[],
  cell: number,
  scale: number,
  ramp: Ramp,
  clip: number,
): void {
  const from = Math.max(Math.round(clip * scale), Math.round((band.top + 1) * scale));
  const to = Math.min(height, Math.round((band.top + band.height - 1) * scale));
  const line = cell > 3 ? 1 : 0;
  order.forEach((feature, place) => {
    const part = band.most > 0 ? Math.min(1, Math.abs(band.values[feature]) / band.most) : 0;
    const byte = Math.round(128 + 127 * Math.sign(band.values[feature]) * part ** POWER);
    const color = ramp[Math.max(1, byte)];
    const left = Math.round((band.left + place * cell) * scale);
    const right = Math.round((band.left + (place + 1) * cell - line) * scale);
    for (let y = from; y < to; y++) pixels.fill(color, y * width + left, y * width + right);
  });
}
