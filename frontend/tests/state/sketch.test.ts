import { expect, test } from "vitest";
import { BOARD, boardOf, boardRow, likeness, rowsOf, stampedBoard } from "../../src/state/sketch";

test("ready drawings and those of a head have one size, the strongest cell full", () => {
  const columns = (board: readonly number[]) => rowsOf(board).map((row) => row.indexOf(1));
  expect(columns(stampedBoard("previous token"))).toEqual([-1, ...Array(BOARD - 1).keys()]);
  const board = boardOf((query, key) => (key === 2 * query ? 0.25 : 0), 2 * BOARD, 4 * BOARD);
  expect(board.length).toBe(BOARD * BOARD);
  expect(columns(board)).toEqual([...Array(BOARD).keys()]);
});

test("a drawing is most like the head that was drawn", () => {
  const [side, width] = [12, 24];
  const maps = new Uint8Array(3 * width * width);
  for (let row = 0; row < width; row++) {
    maps[row * width + Math.max(0, row - 1)] = 255;
    maps[width * width + row * width + row] = 255;
    maps[2 * width * width + row * width] = 255;
  }
  expect(boardRow(0, side)).toBe(0);
  expect(boardRow(BOARD - 1, side)).toBe(width - 1);
  const best = (stamp: string) => {
    const values = likeness(stampedBoard(stamp), maps, side);
    return values.indexOf(Math.max(...values));
  };
  expect([best("previous token"), best("itself"), best("first token")]).toEqual([0, 1, 2]);
});
