import { expect, test } from "vitest";
import { heat, keyLooks, LOOKS, type LookRules, lookRow, looksOf, paddedTokens } from "../../src/draw/heat";
import { visibleRuns } from "../../src/draw/scores";
import { exampleBytes } from "../examples/page";

const RAMP = Uint32Array.from({ length: 256 }, (_, byte) => 1000 + byte);
const COLORS = { ramp: RAMP, ground: 1, ink: 2 };
const RULES: LookRules = {
  queries: 3,
  keys: 4,
  visible: visibleRuns(Int32Array.of(0, 0, 1, 1, 1, 3), 3),
  sliding: true,
  query: Uint8Array.of(1, 1, 1),
  keyLooks: null,
};
const all = (queries: number, keys: number): LookRules => ({
  ...RULES,
  queries,
  keys,
  visible: null,
  query: new Uint8Array(queries).fill(1),
});

const pixelsOf = (data: Uint8ClampedArray) => [...new Uint32Array(data.buffer)];
const looks = (rules: LookRules, query: number) =>
  [...lookRow(rules, query, new Uint8Array(rules.keys))].map((look) => LOOKS[look]);

test("each pixel has the colour of the cell under its middle, and none beside the matrix", () => {
  const base = { bytes: Uint8Array.of(1, 2, 3, 4, 5, 6), rows: 2, columns: 3 };
  const view = { width: 4, height: 3, left: 1, top: 0, cell: 1.5 };
  const pixels = pixelsOf(heat(base, view, COLORS, all(2, 3)));
  expect(pixels).toEqual([1002, 1003, 1003, 0, 1005, 1006, 1006, 0, 1005, 1006, 1006, 0]);
});

test("zoomed out, a single strong cell is still seen", () => {
  const bytes = new Uint8Array(300 * 500);
  bytes[177 * 500 + 399] = 250;
  for (const [width, height, cell] of [
    [250, 150, 0.5],
    [125, 75, 0.25],
    [100, 60, 0.2],
  ]) {
    const pixels = pixelsOf(
      heat({ bytes, rows: 300, columns: 500 }, { width, height, left: 0, top: 0, cell }, COLORS, all(300, 500)),
    );
    expect(pixels).toContain(1250);
  }
});

test("of signed bytes the one farthest from none is seen", () => {
  const bytes = exampleBytes(260 * 3, 2).fill(128);
  bytes[1] = 40;
  bytes[3] = 200;
  const view = { width: 130, height: 2, left: 0, top: 0, cell: 0.5 };
  const pixels = pixelsOf(heat({ bytes, rows: 3, columns: 260 }, view, { ...COLORS, zero: 128 }, all(3, 260)));
  expect(pixels.slice(0, 3)).toEqual([1040, 1200, 1128]);
});

test("cells look masked, out of window, without attention, padded or left out", () => {
  expect(looks(RULES, 0)).toEqual(["shown", "masked", "masked", "masked"]);
  expect(looks(RULES, 1)).toEqual(["out of window", "shown", "shown", "masked"]);
  expect(looks(RULES, 2)).toEqual(Array(4).fill("no attention"));
  const padded = paddedTokens(["a", "[PAD]", "pad", "<pad>"], [false, true, false, true]);
  expect([...padded]).toEqual([0, 1, 0, 1]);
  const some = { ...RULES, keyLooks: keyLooks(padded, Uint8Array.of(0, 1, 1, 1)), query: Uint8Array.of(1, 1, 0) };
  expect(looks(some, 1)).toEqual(["excluded", "padded", "shown", "padded"]);
  expect(looks(some, 2)).toEqual(Array(4).fill("excluded"));
  expect(looksOf(RULES)).toEqual(["masked", "out of window", "no attention"]);
  expect(looksOf(all(2, 4))).toEqual([]);
});

test("each look without colour has a pattern of its own", () => {
  const patterns = [1, 2, 3, 4, 5].map((look) => {
    const row = new Uint8Array(9).fill(look);
    const rules = { ...all(9, 9), keyLooks: row };
    return pixelsOf(
      heat(
        { bytes: new Uint8Array(81), rows: 9, columns: 9 },
        { width: 36, height: 36, left: 0, top: 0, cell: 4 },
        COLORS,
        rules,
      ),
    ).join();
  });
  expect(new Set(patterns).size).toBe(5);
});
