import { expect, test } from "vitest";
import { BOARD, boardOf, boardRow, emptyBoard, likest, meanBoards, stampedBoard } from "../../src/state/sketch";

test("ready drawings and those of a head have one size, the strongest cell full", () => {
  const columns = (board: readonly number[]) =>
    Array.from({ length: BOARD }, (_, row) => board.slice(row * BOARD, (row + 1) * BOARD).indexOf(1));
  expect(columns(stampedBoard("previous token"))).toEqual([-1, ...Array(BOARD - 1).keys()]);
  const board = boardOf((query, key) => (key === 2 * query ? 0.25 : 0), 2 * BOARD, 4 * BOARD);
  expect(board.length).toBe(BOARD * BOARD);
  expect(columns(board)).toEqual([...Array(BOARD).keys()]);
});

test("the head that was drawn is the likest, and its own map is wholly like it", () => {
  const [side, width] = [12, 24];
  const maps = new Uint8Array(3 * width * width);
  for (let row = 0; row < width; row++) {
    maps[row * width + Math.max(0, row - 1)] = 255;
    maps[width * width + row * width + row] = 255;
    maps[2 * width * width + row * width] = 255;
  }
  expect(boardRow(0, side)).toBe(0);
  expect(boardRow(BOARD - 1, side)).toBe(width - 1);
  const boards = meanBoards(maps, side);
  const heads = [4, 5, 6].map((head) => [3, head] as const);
  const best = (board: readonly number[]) => likest(board, { heads, boards })[0];
  expect(["previous token", "itself", "first token"].map((stamp) => best(stampedBoard(stamp)).head)).toEqual([4, 5, 6]);
  expect(best(boards[1])).toEqual({ layer: 3, head: 5, at: 1, likeness: expect.closeTo(1, 6) });
  expect(likest(emptyBoard(), { heads, boards })).toEqual([]);
});
