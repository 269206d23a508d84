import { WEIGHT } from "../draw/weights";

// A pattern that is drawn on a blank map, and how much mean maps look like it.

/** Rows and columns of a drawing. */
export const BOARD = 12;

/** What can be drawn by one press: where the query of a row looks. */
export const STAMPS: Readonly<Record<string, (query: number) => number>> = {
  "previous token": (query) => query - 1,
  itself: (query) => query,
  "next token": (query) => query + 1,
  "first token": () => 0,
  "last token": () => BOARD - 1,
};

/** The cells of a drawing, row by row, each from 0 to 1. */
export type Drawing = readonly number[];

export function emptyBoard(): number[] {
  return Array(BOARD * BOARD).fill(0);
}

export function isDrawn(board: Drawing): boolean {
  return board.some((cell) => cell > 0);
}

export function stampedBoard(stamp: string): number[] {
  const board = emptyBoard();
  for (let query = 0; query < BOARD; query++) {
    const key = STAMPS[stamp](query);
    if (key >= 0 && key < BOARD) board[query * BOARD + key] = 1;
  }
  return board;
}

/** Weights of a head as a drawing: of each part of the map the largest, the strongest full. */
export function boardOf(weight: (query: number, key: number) => number, queries: number, keys: number): number[] {
  const board = emptyBoard();
  for (let query = 0; query < queries; query++) {
    const row = Math.floor((query * BOARD) / queries);
    for (let key = 0; key < keys; key++) {
      const cell = row * BOARD + Math.floor((key * BOARD) / keys);
      board[cell] = Math.max(board[cell], weight(query, key));
    }
  }
  return filled(board);
}

/** The strongest cell full. */
function filled(board: Drawing): number[] {
  const most = Math.max(...board);
  return board.map((value) => (most > 0 ? value / most : 0));
}

/** The row of a mean map that a row of the board stands for: so many of the first and of the last tokens of a text. */
export function boardRow(row: number, side: number): number {
  return row < BOARD / 2 ? row : 2 * side - BOARD + row;
}

/** The mean maps of heads as drawings; a byte of a map holds the root of a weight. */
export function meanBoards(maps: Uint8Array, side: number): Drawing[] {
  const width = 2 * side;
  const place = (at: number) => boardRow(at, side);
  return Array.from({ length: maps.length / width ** 2 }, (_, head) =>
    filled(
      emptyBoard().map((_, cell) => {
        const row = head * width + place(Math.floor(cell / BOARD));
        return WEIGHT[maps[row * width + place(cell % BOARD)]];
      }),
    ),
  );
}

/** Heads as drawings. */
export interface Sketched {
  readonly heads: readonly (readonly [layer: number, head: number])[];
  readonly boards: readonly Drawing[];
}

/** Heads by how much they look like a drawing: the correlation over its cells. */
export function likest(board: Drawing, { heads, boards }: Sketched) {
  if (!isDrawn(board)) return [];
  const all = heads.map(([layer, head], at) => ({ layer, head, at, likeness: correlation(board, boards[at]) }));
  return all.sort((one, other) => other.likeness - one.likeness || one.at - other.at);
}

function correlation(one: Drawing, other: Drawing): number {
  const mean = (values: Drawing) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middle, otherMiddle] = [mean(one), mean(other)];
  let [both, square, otherSquare] = [0, 0, 0];
  one.forEach((value, at) => {
    const [apart, otherApart] = [value - middle, other[at] - otherMiddle];
    both += apart * otherApart;
    square += apart * apart;
    otherSquare += otherApart * otherApart;
  });
  const size = Math.sqrt(square * otherSquare);
  return size > 0 ? both / size : 0;
}
