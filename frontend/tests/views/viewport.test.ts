import { expect, test } from "vitest";
import { clamped, fitted, labelled, panned, withCell, zoomed } from "../../src/views/matrix/viewport";

const ROOM = { width: 400, height: 300, rows: 600, columns: 1000 };
const FIT = fitted(ROOM);

test("the whole matrix fits, and a small one is not blown up", () => {
  expect(FIT).toEqual({ left: 0, top: 0, cell: 0.4 });
  expect(fitted({ ...ROOM, rows: 3, columns: 5 }).cell).toBe(44);
});

test("zoom keeps the cell under the pointer and ends at the whole matrix", () => {
  const at = { x: 200, y: 150 };
  const near = zoomed(FIT, 5, at, ROOM);
  expect(near.cell).toBeCloseTo(2);
  expect(near.left + at.x / near.cell).toBeCloseTo(at.x / FIT.cell);
  expect(near.top + at.y / near.cell).toBeCloseTo(at.y / FIT.cell);
  expect(zoomed(near, 0.01, at, ROOM)).toEqual(FIT);
});

test("panning stops at the edges", () => {
  const near = zoomed(FIT, 5, { x: 0, y: 0 }, ROOM);
  expect(panned(near, 50, 50, ROOM)).toEqual(near);
  expect(panned(near, -40, -20, ROOM)).toEqual({ ...near, left: 20, top: 10 });
  expect(panned(near, -1e6, -1e6, ROOM)).toEqual({ ...near, left: 800, top: 450 });
});

test("a cell is brought into sight, one in sight moves nothing", () => {
  const near = zoomed(FIT, 5, { x: 0, y: 0 }, ROOM);
  expect(withCell(near, { query: 20, key: 20 }, ROOM)).toEqual(near);
  const far = withCell(near, { query: 599, key: 999 }, ROOM);
  expect(far).toEqual({ ...near, left: 800, top: 450 });
  expect(withCell(far, { query: 10, key: 10 }, ROOM)).toMatchObject({ left: 10, top: 10 });
});

test("nothing leaves the matrix however it was asked for", () => {
  expect(clamped({ left: -5, top: 9e9, cell: 0 }, ROOM)).toEqual(FIT);
});

test("labels have room: every token, or every few, always the same ones", () => {
  expect(labelled(0, 20, 60, 9, 13)).toEqual([0, 1, 2]);
  expect(labelled(0, 2, 60, 100, 13)).toEqual([0, 7, 14, 21, 28]);
  expect(labelled(10, 2, 40, 100, 13).every((token) => token % 7 === 0)).toBe(true);
});
