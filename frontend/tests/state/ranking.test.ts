import { expect, test } from "vitest";
import { exampleSource } from "../../src/examples/page";
import { SKETCH_SIZE, sketchOf, stamped } from "../../src/state/ranking";
import { besideEachOther, editOf } from "../../src/state/twoTexts";
import { pageOf } from "../liveModel";

test("ready drawings and those of a head have one size, the strongest cell full", () => {
  expect(stamped("token before").map((row) => row.indexOf(1))).toEqual([-1, ...Array(SKETCH_SIZE - 1).keys()]);
  const cells = sketchOf((query, key) => (key === 2 * query ? 0.25 : 0), 24, 48);
  expect(cells.length).toBe(SKETCH_SIZE);
  expect(cells.map((row) => row.indexOf(1))).toEqual([...Array(SKETCH_SIZE).keys()]);
});

test("of two texts the edited tokens are marked, and both are one source", async () => {
  const [first, second] = [pageOf("we went home"), pageOf("we came home")];
  const of = ({ page }: typeof first) => page.stacks[0].query;
  expect(editOf(of(first), of(second))).toEqual({ first: [2], second: [2] });
  const both = besideEachOther(exampleSource(first), exampleSource(second));
  expect(both.header.beside?.b.title).toBe("we came home");
  expect(await both.chunk("beside/b/weights/self/2")).toEqual(second.chunks.get("weights/self/2"));
});
