import { expect, test } from "vitest";
import { fitSelection, fitTray, ofEveryRecord, pageSelection, readEntry, writeEntry } from "../../src/state/selection";
import { examplePage, tokens } from "../examples/page";

const { page } = examplePage({}, { name: "cross", heads: 2, layers: [1, 4], query: tokens(["a", "b", "c", "d"]) });
const start = pageSelection(page);

test.each([
  ["0", {}],
  ["5-1", { layer: 5, heads: [1] }],
  ["0-2 view=matrix sinks=0", { heads: [2], view: "matrix", sinks: false }],
  ["0 view=text query=2 direction=given", { view: "text", query: [2], direction: "given" }],
  [
    "4-0 stack=cross query=1,3 key=0 sinks=0",
    { stack: "cross", layer: 4, heads: [0], query: [1, 3], key: [0], sinks: false },
  ],
] as const)("%s is one picture", (line, chosen) => {
  const selection = fitSelection({ ...start, ...chosen }, page);
  expect(writeEntry(selection, page)).toBe(line);
  expect(fitSelection({ ...start, ...readEntry(line, page) }, page)).toEqual(selection);
});

test("a stack may be called anything", () => {
  const [first, second] = page.stacks;
  const odd = { ...page, stacks: [first, { ...second, name: "a b;c~d=e <i>" }] };
  const line = writeEntry({ ...start, stack: "a b;c~d=e <i>", layer: 1 }, odd);
  expect(line).toBe("1 stack=a%20b%3Bc%7Ed%3De%20%3Ci%3E");
  expect(readEntry(line, odd)).toMatchObject({ stack: "a b;c~d=e <i>" });
});

test("nonsense is left out", () => {
  expect(fitTray(["2-0", "two", "", "2-", "2-0", "__proto__"], page)).toEqual(["2-0"]);
  expect(readEntry("2 view=film query=a hide_special stack=%E0%A4%A", page)).toMatchObject({
    view: "head",
    query: [],
    hide_special: false,
  });
  expect(fitTray(["0", "1", "2", "3", "4", "5", "6"], page)).toHaveLength(6);
});

test("without pictures nothing is compared", () => {
  expect(fitSelection({ ...start, view: "compare" }, page).view).toBe("head");
  expect(fitSelection({ ...start, view: "compare", tray: ["0-1"] }, page).view).toBe("compare");
});

test("pictures of further records are named after them", () => {
  const { page: other } = examplePage();
  const small = { ...other, stacks: [{ ...other.stacks[0], layers: other.stacks[0].layers.slice(0, 1) }] };
  const beside = { ...page, beside: { b: page, small } };
  expect(readEntry("4-0 record=b stack=cross", beside)).toMatchObject({ stack: "cross", layer: 4, heads: [0] });
  expect(readEntry("0 record=c", beside)).toBeNull();
  expect(readEntry("0 record=__proto__", beside)).toBeNull();
  expect(writeEntry({ ...start, sinks: false }, page, "b")).toBe("0 record=b sinks=0");
  // A record that has no such layer is left out.
  expect(ofEveryRecord("0-1", beside)).toEqual(["0-1", "0-1 record=b", "0-1 record=small"]);
  expect(ofEveryRecord("5-1 view=matrix", beside)).toEqual(["5-1 view=matrix", "5-1 record=b view=matrix"]);
  expect(ofEveryRecord("0", page)).toEqual(["0"]);
});
