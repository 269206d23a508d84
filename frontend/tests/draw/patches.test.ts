import { expect, test } from "vitest";
import { boxOf, pictureOf, pixelsOf, placeOf, rasterOf, rowStep } from "../../src/draw/patches";
import type { PageTokens } from "../../types/page";
import { tokens } from "../examples/page";

/** A class token, the lower row of a first picture of 2 x 3 patches, a word, and a second picture. */
const SEEN: PageTokens = {
  ...tokens(["[CLS]", "a", "b", "c", "word", "d"]),
  areas: ["", "2/1", "2/2", "2/3", "", "1/1"],
  runs: [
    [0, 1],
    [1, 4, 1],
    [4, 5],
    [5, 6, 2],
  ],
  grids: [
    [2, 3],
    [1, 1],
  ],
};

test("red, green and blue become pixels that hide what is under them", () => {
  const { width, height, pixels } = rasterOf(Uint8Array.of(1, 2, 3, 4, 5, 6), 2, 1);
  expect([width, height]).toEqual([2, 1]);
  expect([...pixels]).toEqual([1, 2, 3, 255, 4, 5, 6, 255]);
});

test("patches know their place and their picture, other tokens have none", () => {
  expect(placeOf(SEEN, 2)).toEqual({ top: 1, left: 1, bottom: 2, right: 2 });
  expect(placeOf(SEEN, 0)).toBeNull();
  expect(placeOf(tokens(["a"]), 0)).toBeNull();
  expect([0, 1, 3, 4, 5].map((token) => pictureOf(SEEN, token))).toEqual([0, 1, 1, 0, 2]);
  expect(pictureOf(tokens(["a"]), 0)).toBe(0);
});

test("a run has the rows and columns that its patches are in", () => {
  expect(boxOf(SEEN, 1, 4)).toEqual({ top: 1, left: 0, bottom: 2, right: 3 });
  expect(boxOf(SEEN, 2, 4)).toEqual({ top: 1, left: 1, bottom: 2, right: 3 });
});

test("the pixels of all patches make up the picture, each pixel in one of them", () => {
  const raster = rasterOf(new Uint8Array(3 * 13 * 7), 13, 7);
  const counts = new Uint8Array(13 * 7);
  for (let row = 0; row < 2; row++) {
    for (let column = 0; column < 3; column++) {
      const place = { top: row, left: column, bottom: row + 1, right: column + 1 };
      const { top, left, bottom, right } = pixelsOf(place, [2, 3], raster);
      for (let y = top; y < bottom; y++) for (let x = left; x < right; x++) counts[13 * y + x]++;
    }
  }
  expect(new Set(counts)).toEqual(new Set([1]));
});

test("up and down lead from row to row of one picture, and in and out at its edges", () => {
  const seen: PageTokens = {
    ...tokens(["[CLS]", "a", "b", "c", "d", "word", "e", "f"]),
    areas: ["", "1/1", "1/2", "2/1", "2/2", "", "1/1", "2/1"],
    runs: [
      [0, 1],
      [1, 5, 1],
      [5, 6],
      [6, 8, 2],
    ],
    grids: [
      [2, 2],
      [2, 1],
    ],
  };
  const down = [1, 2, 3, 4, 6, 7].map((token) => rowStep(seen, token, 1));
  expect(down).toEqual([3, 4, 5, 5, 7, 8]);
  const up = [1, 2, 3, 4, 6, 7].map((token) => rowStep(seen, token, -1));
  expect(up).toEqual([0, 0, 1, 2, 5, 6]);
  // Words lead no further than to the next picture.
  expect([rowStep(seen, 0, 1), rowStep(seen, 5, 1), rowStep(seen, 5, -1), rowStep(seen, 0, -1)]).toEqual([1, 6, 4, -1]);
  const long = { ...seen, areas: Array(32).fill(""), runs: [[0, 32]] };
  expect([rowStep(long, 5, 1), rowStep(long, 15, -1), rowStep(tokens(["a"]), 0, 1)]).toEqual([15, 5, 10]);
});
