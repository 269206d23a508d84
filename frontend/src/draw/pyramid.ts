/** A matrix of bytes at one size. */
export interface Level {
  readonly bytes: Uint8Array;
  readonly rows: number;
  readonly columns: number;
}

/** Below this side no smaller level is made: a screen shows it whole. */
const SMALLEST = 64;

/** How strong a byte is: from 0, or for signed bytes from 128 in both directions. */
export type Strength = "plain" | "signed";

/** The matrix, and ever smaller ones in which each byte is the strongest of four, so that no strong one is lost. */
export function pyramid(base: Level, strength: Strength): Level[] {
  const levels = [base];
  for (let top = base; Math.max(top.rows, top.columns) > SMALLEST; top = levels[levels.length - 1]) {
    levels.push(halved(top, strength === "signed" ? 128 : 0));
  }
  return levels;
}

function halved({ bytes, rows, columns }: Level, zero: number): Level {
  const [newRows, newColumns] = [Math.ceil(rows / 2), Math.ceil(columns / 2)];
  const made = new Uint8Array(newRows * newColumns);
  for (let row = 0; row < newRows; row++) {
    const upper = 2 * row * columns;
    const lower = 2 * row + 1 < rows ? upper + columns : upper;
    for (let column = 0; column < newColumns; column++) {
      const left = 2 * column;
      const right = left + 1 < columns ? left + 1 : left;
      const top = stronger(bytes[upper + left], bytes[upper + right], zero);
      const bottom = stronger(bytes[lower + left], bytes[lower + right], zero);
      made[row * newColumns + column] = stronger(top, bottom, zero);
    }
  }
  return { bytes: made, rows: newRows, columns: newColumns };
}

function stronger(a: number, b: number, zero: number): number {
  return Math.abs(a - zero) >= Math.abs(b - zero) ? a : b;
}
