import { expect, test } from "vitest";
import {
  type RGB,
  rampColor,
  rampGradient,
  signedByte,
  signedRamp,
  stretched,
  textOn,
  wordRamp,
} from "../../src/draw/color";
import { KIND_LOOKS, type KindName, kindRamp } from "../../src/draw/kinds";
import { contrast } from "./contrast";

const luminance = (color: RGB) => contrast(color, [0, 0, 0]);

const KINDS = Object.keys(KIND_LOOKS) as KindName[];

test.each([true, false])("a stronger weight is never nearer to paper, dark %s", (dark) => {
  const ramp = kindRamp("resting", dark);
  const steps = Array.from(ramp, (_, byte) => luminance(rampColor(ramp, byte)) * (dark ? 1 : -1));
  for (let byte = 1; byte < 256; byte++) expect(steps[byte]).toBeGreaterThanOrEqual(steps[byte - 1] - 0.02);
});

test.each([true, false])("words can be read on every colour behind them, dark %s", (dark) => {
  const ofKinds = KINDS.map((kind) => kindRamp(kind, dark));
  for (const ramp of [...ofKinds, ...ofKinds.map(wordRamp), signedRamp(dark)]) {
    for (let byte = 0; byte < 256; byte++) {
      const color = rampColor(ramp, byte);
      expect(contrast(color, textOn(color) === "#000" ? [0, 0, 0] : [255, 255, 255])).toBeGreaterThanOrEqual(4.5);
    }
  }
});

test("signed bytes keep the sign, and the middle for none", () => {
  expect([-2, -1, 0, 0.001, 2, 9].map((value) => signedByte(value, 2))).toEqual([1, 65, 128, 128, 255, 255]);
  expect(signedByte(3, 0)).toBe(128);
});

test("a stretched ramp has its last colour earlier", () => {
  const ramp = kindRamp("resting", false);
  expect(stretched(ramp, 100)[100]).toBe(ramp[255]);
  expect(stretched(ramp, 100)[200]).toBe(ramp[255]);
  expect(stretched(ramp, 100)[0]).toBe(ramp[0]);
  expect(stretched(ramp, 255)).toEqual(ramp);
});

test("a gradient runs from the first to the last colour", () => {
  const ramp = Uint32Array.from({ length: 256 }, (_, byte) => (0xff000000 | byte) >>> 0);
  expect(rampGradient(ramp)).toMatch(/^linear-gradient\(90deg, rgb\(0 0 0\), .*rgb\(255 0 0\)\)$/);
});
