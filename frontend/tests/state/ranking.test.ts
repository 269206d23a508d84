import { signal } from "@preact/signals-core";
import { expect, test, vi } from "vitest";
import type { Live } from "../../src/state/live";
import { sketchState } from "../../src/state/ranking";
import { isDrawn, stampedBoard } from "../../src/state/sketch";
import type { LiveAtlas, SketchQuestion } from "../../types/live";

const SIDE = 12;

/** Two heads of layer 3: one looks at the first token, the other at the token before. */
function atlasOf(): LiveAtlas {
  const width = 2 * SIDE;
  const maps = new Uint8Array(2 * width * width);
  for (let row = 0; row < width; row++) {
    maps[row * width] = 255;
    maps[width * width + row * width + Math.max(0, row - 1)] = 255;
  }
  const heads: [number, number][] = [3, 3].map((layer, head) => [layer, head + 4]);
  return { texts: 9, stack: "self", side: SIDE, heads, mean_maps: btoa(String.fromCharCode(...maps)) };
}

function stateOf(atlas: () => Promise<LiveAtlas>) {
  const asked: string[] = [];
  const model = {
    atlas,
    sketch: async ({ matrix, stack }: Omit<SketchQuestion, "page">) => {
      asked.push(`${stack} ${matrix.length} x ${matrix[0].length}`);
      return { heads: [{ layer: 0, head: 1, likeness: 0.75 }] };
    },
  };
  const live = { model, answer: signal({ opening: { id: "r1" } }) } as unknown as Live;
  return { state: sketchState(live), asked };
}

test("a drawing is compared with a text by the model, and with the maps of an atlas here", async () => {
  const { state, asked } = stateOf(async () => atlasOf());
  const names = () => state.heads.value.map(({ layer, head }) => `${layer}-${head}`);
  state.draw(stampedBoard("previous token"), "self");
  await vi.waitFor(() => expect(names()).toEqual(["0-1"]));
  expect(asked).toEqual(["self 12 x 12"]);
  state.choose("atlas", "self");
  await vi.waitFor(() => expect(names()).toEqual(["3-5", "3-4"]));
  // The mean map of a head, drawn, is most like itself.
  await state.drawHead(3, 4, "self");
  await vi.waitFor(() => expect(names()).toEqual(["3-4", "3-5"]));
  expect(state.heads.value[0].likeness).toBeCloseTo(1, 6);
  expect(asked.length).toBe(1);
  state.draw(
    state.board.value.map(() => 0),
    "self",
  );
  expect([names(), isDrawn(state.board.value)]).toEqual([[], false]);
});

test("heads of another stack than the atlas has are not ranked, and what failed is asked for again", async () => {
  let tries = 0;
  const { state } = stateOf(async () => {
    tries += 1;
    if (tries === 1) throw new Error("gone");
    return atlasOf();
  });
  state.draw(stampedBoard("itself"), "self");
  state.choose("atlas", "self");
  await vi.waitFor(() => expect(state.problem.value).toBe("gone"));
  state.rank("cross");
  await vi.waitFor(() => expect(state.problem.value).toContain("stack self alone"));
  expect([tries, state.heads.value]).toEqual([2, []]);
});
