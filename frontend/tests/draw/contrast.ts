import { luminance, type RGB } from "../../src/draw/color";

/** Contrast of two colours as WCAG defines it, 1 to 21. */
export function contrast(a: RGB, b: RGB): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}
