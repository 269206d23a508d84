import { expect, test } from "vitest";
import { dotsOf, equalScales, nextDot, partOf, placeNames, scaleOf } from "../../src/views/scatter/layout";

const SIZE = { width: 400, height: 200 };

test.each([
  [[0.02, 3.1, 1.2], 5],
  [[-4, 90], 3],
  [[0.5], 5],
  [[1e-7, 3e-7], 4],
  [[], 5],
])("a scale holds %j, its ticks are round and inside", (values, count) => {
  const scale = scaleOf(values, count);
  for (const value of values) {
    expect(partOf(scale, value)).toBeGreaterThan(0);
    expect(partOf(scale, value)).toBeLessThan(1);
  }
  expect(scale.ticks.length).toBeGreaterThan(0);
  expect(scale.ticks.length).toBeLessThanOrEqual(count + 2);
  for (const tick of scale.ticks) {
    expect(partOf(scale, tick)).toBeGreaterThanOrEqual(0);
    expect(partOf(scale, tick)).toBeLessThanOrEqual(1);
    expect(String(tick).replace(/e.*/, "").length).toBeLessThan(6);
  }
});

test("dots stand where their numbers are, unknown ones nowhere", () => {
  const [x, y] = [
    [0, 10, 5, Number.NaN],
    [0, 1, Number.NaN, 1],
  ];
  const dots = dotsOf(x, y, [scaleOf(x), scaleOf(y)], SIZE);
  expect(dots.map(({ head }) => head)).toEqual([0, 1]);
  expect(dots[0].x).toBeLessThan(dots[1].x);
  expect(dots[0].y).toBeGreaterThan(dots[1].y);
});

test("a map is as long across as it is upwards", () => {
  const [x, y] = [
    [0, 3, 0],
    [0, 0, 4],
  ];
  const [a, b, c] = dotsOf(x, y, equalScales(x, y, SIZE), SIZE);
  expect((b.x - a.x) / 3).toBeCloseTo((a.y - c.y) / 4, 6);
  for (const { x, y } of [a, b, c]) {
    expect(x > 0 && x < SIZE.width && y > 0 && y < SIZE.height).toBe(true);
  }
});

test("arrow keys go to the nearest dot in their direction", () => {
  const dots = [
    { head: 0, x: 100, y: 100 },
    { head: 1, x: 140, y: 105 },
    { head: 2, x: 105, y: 190 },
    { head: 3, x: 110, y: 40 },
    { head: 4, x: 120, y: 180 },
  ];
  const next = (key: string) => nextDot(dots, dots[0], key)?.head ?? null;
  expect(["ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "Enter"].map(next)).toEqual([1, 2, 3, null, null]);
});

test("names stand beside their dots, inside, and over nothing", () => {
  const dots = Array.from({ length: 60 }, (_, head) => ({
    head,
    x: 200 + 190 * Math.sin(7.1 * head),
    y: 100 + 80 * Math.cos(3.3 * head),
  }));
  const names = placeNames(
    dots.map((dot) => ({ dot, text: `10-${dot.head}` })),
    dots,
    SIZE,
  );
  expect(names.length).toBeGreaterThan(15);
  expect(names[0].text).toBe("10-0");
  const boxes = names.map(({ x, y, text }) => ({ x, y, half: 3.1 * text.length }));
  boxes.forEach(({ x, y, half }, at) => {
    expect(x - half >= 0 && x + half <= SIZE.width && y - 6 >= 0 && y + 6 <= SIZE.height).toBe(true);
    for (const dot of dots) expect(Math.abs(dot.x - x) >= half || Math.abs(dot.y - y) >= 6).toBe(true);
    for (const other of boxes.slice(at + 1)) {
      const [dx, dy] = [Math.abs(other.x - x), Math.abs(other.y - y)];
      expect(dx >= half + other.half - 1e-9 || dy >= 12 - 1e-9).toBe(true);
    }
  });
});
