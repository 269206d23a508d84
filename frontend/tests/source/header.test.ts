import { expect, test } from "vitest";
import { parseHeader } from "../../src/source/source";
import type { PageLayer } from "../../types/page";
import { examplePage } from "../examples/page";
import { quantityPage } from "../quantities";

function changed(change: (page: ReturnType<typeof examplePage>["page"]) => void): string {
  const { page } = structuredClone({ page: examplePage().page });
  change(page);
  return JSON.stringify(page);
}

test("a good header is read as it is", () => {
  for (const { page } of [examplePage(), quantityPage()]) expect(parseHeader(JSON.stringify(page))).toEqual(page);
});

test("value norms and quantities have to fit their layer", () => {
  const bad = (change: (layer: PageLayer) => void) => () => {
    const { page } = structuredClone({ page: quantityPage().page });
    change(page.stacks[0].layers[1]);
    parseHeader(JSON.stringify(page));
  };
  expect(bad((layer) => layer.value_norms?.shape.splice(0, 2, 3, 5))).toThrow(/layer 2.*3 × 5.*head, key and 3 × 7/);
  expect(bad((layer) => layer.quantities?.rollout.shape.reverse())).toThrow(/7 × 5.*query, key and 5 × 7/);
  expect(bad((layer) => layer.quantities?.difference.axes.reverse())).toThrow(/axes key, query, head/);
  expect(bad((layer) => Object.assign(layer.quantities?.rollout ?? {}, { dtype: "int32" }))).toThrow(/int32, sqrt/);
});

test.each<[RegExp, string]>([
  [/not JSON/, "{"],
  [/format 3.*reads format 2/, changed((page) => Object.assign(page, { format: 3 }))],
  [/format undefined/, "{}"],
  [/stacks.*empty/, changed((page) => page.stacks.splice(0))],
  [/no layers/, changed((page) => page.stacks[0].layers.splice(0))],
  [/lists of the key tokens.*7 and 6/, changed((page) => page.stacks[0].key.special.pop())],
  [
    /layer 2.*3 × 7 × 5.*3 × 5 × 7/,
    changed((page) => Object.assign(page.stacks[0].layers[1].weights ?? {}, { shape: [3, 7, 5] })),
  ],
  [/axes head, key, query/, changed((page) => page.stacks[0].layers[0].weights?.axes.splice(1, 2, "key", "query"))],
  [/uint8, linear/, changed((page) => Object.assign(page.stacks[0].layers[0].weights ?? {}, { encoding: "linear" }))],
  [/neither weights nor queries/, changed((page) => Object.assign(page.stacks[0].layers[0], { weights: null }))],
])("a bad header gives %s", (message, text) => {
  expect(() => parseHeader(text)).toThrow(message);
});
