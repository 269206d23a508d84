import { expect, test } from "vitest";
import { contrast, linear, parseHex, type RGB, textOn } from "../../src/draw/color";
import { headColors } from "../../src/draw/palette";

/** Distance in OKLab, times 100. */
function distance(a: RGB, b: RGB): number {
  const [first, second] = [oklab(a), oklab(b)];
  return 100 * Math.hypot(...first.map((value, axis) => value - second[axis]));
}

function oklab(color: RGB): number[] {
  const [r, g, b] = color.map(linear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

test.each([
  [12, false, 14],
  [12, true, 12],
  [16, false, 12],
  [16, true, 10.5],
  [32, false, 8],
  [32, true, 7],
])("any two of %i heads (dark: %s) are at least %s apart", (heads, dark, least) => {
  const colors = headColors(heads, dark).map(parseHex);
  expect(colors).toHaveLength(heads);
  const distances = colors.flatMap((a, i) => colors.slice(i + 1).map((b) => distance(a, b)));
  expect(Math.min(...distances)).toBeGreaterThan(least);
});

test("a model with few heads has the first colours of the smallest palette; beyond 32 they come again", () => {
  expect(headColors(5, false)).toEqual(headColors(12, false).slice(0, 5));
  expect(headColors(13, true)).toEqual(headColors(16, true).slice(0, 13));
  expect(headColors(40, false).slice(32)).toEqual(headColors(32, false).slice(0, 8));
});

test("numbers on every colour can be read", () => {
  for (const dark of [false, true]) {
    for (const heads of [12, 16, 32]) {
      for (const color of headColors(heads, dark).map(parseHex)) {
        const text: RGB = textOn(color) === "#000" ? [0, 0, 0] : [255, 255, 255];
        expect(contrast(color, text)).toBeGreaterThanOrEqual(4.5);
      }
    }
  }
});

test("contrast is that of WCAG", () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
});
