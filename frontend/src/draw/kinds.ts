import { KIND_COLOURS, KIND_OF_LABEL } from "../../contract/values";
import type { PageKinds } from "../../types/page";
import { pixelOf, type Ramp, type RGB } from "./color";
import type { MatrixTile } from "./thumbs";

// The colours of kinds of heads: hue is the kind, lightness the weight, one ramp of lightness for all hues.

export type KindName = PageKinds["kinds"][number];

/** The kind that a label says: several labels are one kind. */
export function kindOfLabel(label: string): KindName | undefined {
  return Object.hasOwn(KIND_OF_LABEL, label) ? KIND_OF_LABEL[label as keyof typeof KIND_OF_LABEL] : undefined;
}

interface KindLook {
  /** Hue in degrees and factor of the chroma of the ramp, light and dark, in OKLCH. */
  readonly hues: readonly [light: number, dark: number];
  readonly chromas: readonly [light: number, dark: number];
  /** A picture of the pattern, 12 x 12: colour is never alone. */
  readonly icon: string;
}

export const KIND_LOOKS: Readonly<Record<KindName, KindLook>> = {
  next: { hues: [270, 248], chromas: [1.1, 1.1], icon: "M2 1h3v3H2zM5 4h3v3H5zM8 7h3v3H8z" },
  previous: { hues: [55, 57], chromas: [1, 0.75], icon: "M1 2h3v3H1zM4 5h3v3H4zM7 8h3v3H7z" },
  same: { hues: [10, 21], chromas: [1.15, 1.2], icon: "M7 1h3v3H7zM4 4h3v3H4zM1 7h3v3H1z" },
  own: { hues: [142, 121], chromas: [1, 1], icon: "M1 1h5v5H1zM6 6h5v5H6z" },
  near: { hues: [225, 188], chromas: [0.7, 0.9], icon: "M1 1h3l7 7v3H8L1 4z" },
  broad: { hues: [320, 328], chromas: [0.95, 1.15], icon: "M1 1h10v10H1z" },
  resting: { hues: [255, 255], chromas: [0.22, 0.22], icon: "M2 1h2.5v10H2zM8.5 1H10v10H8.5z" },
  none: { hues: [85, 85], chromas: [0.2, 0.2], icon: "M1 4h2v2H1zM5 1h2v2H5zM8 6h2v2H8zM4 8h2v2H4z" },
};

/** Six stops over the square root of the weight. The ends keep some chroma: black and white ones take the sharpest
 * diagonals their hue. */
const LIGHTNESS = [
  [1, 0.93, 0.8, 0.62, 0.47, 0.35],
  [0.2, 0.29, 0.43, 0.6, 0.76, 0.91],
];
const CHROMA = [
  [0, 0.03, 0.085, 0.15, 0.165, 0.14],
  [0.008, 0.045, 0.09, 0.135, 0.135, 0.075],
];

export function kindColor(kind: KindName, dark: boolean): string {
  return KIND_COLOURS[kind][dark ? 1 : 0];
}

const made = new Map<string, Ramp>();

/** From paper to the ink of a kind, one step for each byte of a weight: equal weights are equally dark in every hue. */
export function kindRamp(kind: KindName, dark: boolean): Ramp {
  const name = `${kind} ${dark}`;
  const known = made.get(name);
  if (known) return known;
  const theme = dark ? 1 : 0;
  const { hues, chromas } = KIND_LOOKS[kind];
  const ramp = Uint32Array.from({ length: 256 }, (_, byte) => {
    const at = (byte / 255) * 5;
    const below = Math.min(4, Math.floor(at));
    const mix = (stops: readonly number[]) => stops[below] + (at - below) * (stops[below + 1] - stops[below]);
    return pixelOf(fromOklch(mix(LIGHTNESS[theme]), chromas[theme] * mix(CHROMA[theme]), hues[theme]));
  });
  made.set(name, ramp);
  return ramp;
}

/** One colour a tile, where it is too small for a matrix: how clearly the head is of its kind. */
export function heatByte(kind: KindName, score: number): number {
  const part = Math.max(0, Math.min(1, score));
  const pale = kind === "resting" || kind === "none";
  return Math.round(pale ? 30 + 50 * part : 70 + 120 * part);
}

/** Fills a square of a picture, or what is `high` instead, with one colour. */
export function fillTile(
  { pixels, width }: { readonly pixels: Uint32Array; readonly width: number },
  { left, top, size, high = size }: Omit<MatrixTile, "head"> & { readonly high?: number },
  color: number,
): void {
  for (let row = top; row < top + high; row++) pixels.fill(color, row * width + left, row * width + left + size);
}

/** A colour in OKLCH (Ottosson 2020) as sRGB; what a screen cannot show is cut. */
function fromOklch(lightness: number, chroma: number, hue: number): RGB {
  const angle = (hue * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(angle), chroma * Math.sin(angle)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const channel = (linear: number) => {
    const light = linear <= 0.0031308 ? 12.92 * linear : 1.055 * Math.max(linear, 0) ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, light)));
  };
  return [
    channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}
