import { expect, test } from "vitest";
import { examplePage } from "../../src/examples/page";
import { parseHeader } from "../../src/source/header";

function changed(change: (page: ReturnType<typeof examplePage>["page"]) => void): string {
  const { page } = structuredClone({ page: examplePage().page });
  change(page);
  return JSON.stringify(page);
}

test("a good header is read as it is", () => {
  const { page } = examplePage();
  expect(parseHeader(JSON.stringify(page))).toEqual(page);
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
