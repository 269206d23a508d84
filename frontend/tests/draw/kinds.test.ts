import { expect, test } from "vitest";
import { CHOICES } from "../../contract/values";
import { parseHex, rampColor } from "../../src/draw/color";
import { fillTile, heatByte, KIND_LOOKS, kindColor, kindRamp } from "../../src/draw/kinds";
import { contrast } from "./contrast";

/** Luminance of a colour on a scale from 0 to 1, as WCAG has it. */
function light(color: readonly [number, number, number]): number {
  return contrast(color, [0, 0, 0]) * 0.05 - 0.05;
}

test("every kind has a colour that can be read on the page, and none has that of another", () => {
  for (const dark of [false, true]) {
    const card = parseHex(dark ? "#111419" : "#ffffff");
    const colors = CHOICES.kind.map((kind) => kindColor(kind, dark));
    for (const color of colors) expect(contrast(parseHex(color), card)).toBeGreaterThanOrEqual(4.5);
    expect(new Set(colors).size).toBe(CHOICES.kind.length);
  }
  expect(new Set(CHOICES.kind.map((kind) => KIND_LOOKS[kind].icon)).size).toBe(CHOICES.kind.length);
});

test("equal weights are about equally dark in every hue, and more weight is always darker on paper", () => {
  for (const byte of [64, 128, 192, 255]) {
    const lights = CHOICES.kind.map((kind) => light(rampColor(kindRamp(kind, false), byte)));
    expect(Math.max(...lights) - Math.min(...lights)).toBeLessThan(0.12);
  }
  for (const kind of CHOICES.kind) {
    const steps = [0, 60, 120, 180, 255].map((byte) => light(rampColor(kindRamp(kind, false), byte)));
    expect(steps).toEqual([...steps].sort((a, b) => b - a));
  }
});

test("a tile too small for a matrix has one colour, paler where a head rests or does nothing", () => {
  const picture = { pixels: new Uint32Array(5 * 3), width: 5 };
  fillTile(picture, { left: 1, top: 1, size: 2 }, 7);
  expect([...picture.pixels]).toEqual([0, 0, 0, 0, 0, 0, 7, 7, 0, 0, 0, 7, 7, 0, 0]);
  expect(heatByte("resting", 1)).toBeLessThan(heatByte("next", 0.2));
  expect(heatByte("next", 2)).toBe(heatByte("next", 1));
});
