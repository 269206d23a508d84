import { expect, test } from "vitest";
import { readHeads } from "../../src/views/live/Answering";

test("heads are layers, or layer and head of each, or all", () => {
  expect(readHeads(" ")).toEqual({});
  expect(readHeads("0, 12")).toEqual({ layers: [0, 12] });
  expect(readHeads("1-2 0-5;3-0")).toEqual({
    heads: [
      [1, 2],
      [0, 5],
      [3, 0],
    ],
  });
  for (const wrong of ["one", "1 0-5", "1-2-3", "-1", "12345"]) expect(readHeads(wrong)).toBeNull();
});
