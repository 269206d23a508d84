import { expect, test } from "vitest";
import { type Filter, filterMask, hasSpecial, isPair, muteSpecial } from "../../src/draw/tokens";
import { examplePage, tokens } from "../examples/page";

const [stack] = examplePage().page.stacks;

function lines(filter: Filter): string[] {
  const { query, key } = filterMask(stack, filter);
  return [...query].flatMap((q, i) => [...key].flatMap((k, j) => (q && k ? [`${i}-${j}`] : [])));
}

test("A→A, A→B, B→A and B→B have every line exactly once", () => {
  const parts = (["aa", "ab", "ba", "bb"] as const).flatMap(lines);
  expect(parts).toHaveLength(5 * 7);
  expect(new Set(parts)).toEqual(new Set(lines("all")));
});

test("a filter names the text of the query first", () => {
  expect(lines("ba")).toEqual(["4-0", "4-1", "4-2", "4-3", "4-4"]);
  expect(lines("bb")).toEqual(["4-5", "4-6"]);
});

test("muting takes special tokens from both sides and nothing else", () => {
  const { query, key } = muteSpecial(filterMask(stack, "all"), stack);
  expect([...query]).toEqual([0, 1, 1, 0, 1]);
  expect([...key]).toEqual([0, 1, 1, 1, 0, 1, 1]);
  expect([...muteSpecial(filterMask(stack, "ba"), stack).key]).toEqual([0, 1, 1, 1, 0, 0, 0]);
});

test("pairs and special tokens are recognised", () => {
  const [plain] = examplePage({ query: tokens(["a", "b"]), key: stack.key }).page.stacks;
  expect([isPair(stack), isPair(plain)]).toEqual([true, false]);
  const [none] = examplePage({ query: tokens(["a", "b"]), key: tokens(["a", "b", "c"]) }).page.stacks;
  expect([hasSpecial(stack), hasSpecial(plain), hasSpecial(none)]).toEqual([true, true, false]);
});
