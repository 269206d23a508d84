import { NEGATIVE, POSITIVE } from "../../contract/values";

export type RGB = readonly [red: number, green: number, blue: number];

export function parseHex(hex: string): RGB {
  const channel = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
}

/** Black or white, whichever can be read better on a colour; the contrast is never below 4.5. */
export function textOn(color: RGB): string {
  return (luminance(color) + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
}

/** Relative luminance as WCAG defines it. */
export function luminance([red, green, blue]: RGB): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

export function linear(channel: number): number {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

/** Above 0 and below 0, in every picture of values that have both signs. */
export function signColors(dark: boolean): readonly [above: string, below: string] {
  return [POSITIVE[dark ? 1 : 0], NEGATIVE[dark ? 1 : 0]];
}

/** A colour for each byte, as the four channels of a pixel in one little-endian number. */
export type Ramp = Uint32Array;

/** Negative, none, positive; blue and orange stay apart for colour-blind eyes. */
const DIVERGING = {
  light: ["#7a2e00", "#d96214", "#f4b78e", "#ffffff", "#a3c1ee", "#2460be", "#0b2a5e"],
  dark: ["#ffd9b8", "#ff9a4d", "#8a4a1c", "#111419", "#23487e", "#68a6ff", "#d6e8ff"],
};

/** A ramp without its darkest colours, for heat behind words: the strongest word should not look like a mark. */
export function wordRamp(full: Ramp): Ramp {
  return full.map((_, byte) => full[Math.round(0.68 * byte)]);
}

/** For numbers of both signs as bytes: 128 is none. */
export function signedRamp(dark: boolean): Ramp {
  return ramp(DIVERGING[dark ? "dark" : "light"]);
}

/** A number between -most and most as byte of the signed ramp. */
export function signedByte(value: number, most: number): number {
  return most > 0 ? Math.max(1, Math.min(255, Math.round(128 + (127 * value) / most))) : 128;
}

/** The ramp with its last colour at an earlier byte. */
export function stretched(of: Ramp, last: number): Ramp {
  return of.map((_, byte) => of[Math.min(255, Math.round((255 * byte) / Math.max(1, last)))]);
}

export function rampColor(of: Ramp, byte: number): RGB {
  const pixel = of[byte];
  return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
}

/** The colour of a byte as CSS has it. */
export function rampCss(of: Ramp, byte: number): string {
  return `rgb(${rampColor(of, byte).join(" ")})`;
}

/** A colour of a ramp as the ground of words, and the ink that can be read on it. */
export function wordColors(of: Ramp, byte: number) {
  return { background: rampCss(of, byte), color: textOn(rampColor(of, byte)) };
}

export function pixelOf([red, green, blue]: RGB): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** A CSS gradient that shows a ramp from its first to its last byte. */
export function rampGradient(of: Ramp, direction = "90deg"): string {
  const stops = Array.from({ length: 17 }, (_, step) => rampCss(of, Math.min(255, 16 * step)));
  return `linear-gradient(${direction}, ${stops.join(", ")})`;
}

function ramp(hexes: readonly string[]): Ramp {
  const colors = hexes.map(parseHex);
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    const at = (byte / 255) * (colors.length - 1);
    const below = Math.min(colors.length - 2, Math.floor(at));
    const mix = (channel: 0 | 1 | 2) =>
      Math.round(colors[below][channel] + (at - below) * (colors[below + 1][channel] - colors[below][channel]));
    return pixelOf([mix(0), mix(1), mix(2)]);
  });
}
