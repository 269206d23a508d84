export type RGB = readonly [red: number, green: number, blue: number];

export function parseHex(hex: string): RGB {
  const channel = (at: number) => Number.parseInt(hex.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
}

/** Black or white, whichever can be read better on a colour; the contrast is never below 4.5. */
export function textOn(color: RGB): string {
  return (luminance(color) + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
}

/** Contrast of two colours as WCAG defines it, 1 to 21. */
export function contrast(a: RGB, b: RGB): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

function luminance([red, green, blue]: RGB): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

export function linear(channel: number): number {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}
