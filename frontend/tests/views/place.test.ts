import { expect, test } from "vitest";
import { CHOICES } from "../../contract/values";
import type { LoadedKinds } from "../../src/source/heads";
import { floats } from "../../src/source/layers";
import { headsByKind } from "../../src/state/kinds";
import { bySharpness, type Places, placeByLayer, placeInOrder } from "../../src/views/overview/place";
import { examplePage } from "../examples/page";

const range = (count: number) => Array.from({ length: count }, (_, at) => at);
const grid = (layers: number, heads: number) =>
  ({ layers: range(layers).map((layer) => ({ layer })), head_numbers: range(heads) }) as Parameters<
    typeof placeByLayer
  >[0];
const ROOM = { width: 640, height: 596, most: 120 };

/** No tile lies on another or outside. */
function expectApart({ cells, size, width, height }: Places) {
  for (const { x, y } of cells) {
    expect(x + size).toBeLessThanOrEqual(width + 0.01);
    expect(y + size).toBeLessThanOrEqual(height + 0.01);
  }
  const corners = new Set(cells.map(({ x, y }) => `${Math.round(x * 10)} ${Math.round(y * 10)}`));
  expect(corners.size).toBe(cells.length);
}

test("tiles of 12 x 12 heads have 44 pixels where a window of 1280 x 800 leaves that room", () => {
  const places = placeByLayer(grid(12, 12), ROOM);
  expect(places.size).toBeGreaterThanOrEqual(44);
  expect([places.rows.length, places.columns.length, places.heat]).toEqual([12, 12, false]);
  expectApart(places);
});

test.each([
  [6, 12],
  [32, 32],
  [80, 64],
  [126, 128],
])("%i x %i heads fit into the room, labels stand apart", (layers, heads) => {
  const places = placeByLayer(grid(layers, heads), ROOM);
  expect(places.width).toBeLessThanOrEqual(ROOM.width);
  expect(places.height).toBeLessThanOrEqual(ROOM.height);
  const gaps = (values: number[]) => values.slice(1).map((value, at) => value - values[at]);
  for (const gap of gaps(places.rows.map(({ y }) => y))) expect(gap).toBeGreaterThanOrEqual(15);
  for (const gap of gaps(places.columns.map(({ x }) => x))) expect(gap).toBeGreaterThanOrEqual(20);
  expect(places.heat).toBe(places.pitch < 12);
  expectApart(places);
});

/** Seven layers of five heads of all kinds but one. */
function loaded(): LoadedKinds {
  const { page, chunks } = examplePage({
    heads: 5,
    layers: range(7),
    kinds: (layer, head) => ({ kind: (layer + head) % 7, score: layer / 10, sharpness: (layer * 5 + head) / 40 }),
  });
  const [stack] = page.stacks;
  const said = stack.kinds;
  if (!said) throw new Error("no kinds");
  const bytes = chunks.get("kinds/self") as Uint8Array<ArrayBuffer>;
  return { stack, said, values: floats(said.values, bytes), left: 0 };
}

test("by kind each kind begins a row of its own, the clearest first", () => {
  const kinds = loaded();
  const places = placeInOrder(headsByKind(kinds), ROOM);
  expect(places.rows.map(({ kind, text }) => `${kind} ${text}`)).toEqual(
    CHOICES.kind.slice(0, 7).map((kind) => `${kind} 5`),
  );
  expect(places.cells).toHaveLength(35);
  const first = places.cells.filter(({ column }) => column === 0);
  expect(first.length).toBeGreaterThanOrEqual(7);
  expectApart(places);
});

test("by sharpness the sharpest head stands first", () => {
  const places = placeInOrder([bySharpness(loaded())], ROOM);
  expect(places.cells[0]).toMatchObject({ at: 34, row: 0, column: 0 });
  expect(places.rows[0].text).toBe(".85");
  expectApart(places);
});
