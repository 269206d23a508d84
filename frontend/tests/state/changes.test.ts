import { expect, test } from "vitest";
import {
  changeWords,
  followed,
  isInAddress,
  merged,
  pythonLine,
  readAsked,
  readChanges,
  toggled,
  writeAsked,
  writeChanges,
} from "../../src/state/changes";
import type { ModelChange } from "../../types/live";
import { pageOf } from "../liveModel";

const ZERO: ModelChange = { do: "zero", layer: 2, heads: [0] };
const CUT: ModelChange = { do: "cut", layer: 5, heads: [1], queries: [4], keys: [0] };

test("a change is switched on, and off again", () => {
  const both = toggled(toggled([], ZERO), CUT);
  expect(both).toEqual([ZERO, CUT]);
  expect(toggled(both, { ...ZERO })).toEqual([CUT]);
});

test("heads of one layer and kind are one change of a request, in one order", () => {
  const three: ModelChange = { ...ZERO, heads: [3] };
  expect(merged([CUT, three, ZERO])).toEqual([{ ...ZERO, heads: [0, 3] }, CUT]);
  expect(merged([ZERO, { do: "zero", layer: 2 }])).toEqual([{ do: "zero", layer: 2 }]);
  expect(merged([ZERO, { ...ZERO, queries: [1] }]).length).toBe(2);
});

test("changes go into an address and come back, one switch a head", () => {
  const all: ModelChange[] = [
    ZERO,
    { ...ZERO, heads: [3] },
    CUT,
    { do: "uniform", layer: 1, stack: "cross: a" },
    { do: "patch", layer: 0, heads: [2], from: "a; ~ text: 2" },
  ];
  const text = writeChanges(all);
  expect(text).toContain("zero:2-0,3;cut:5-1q4k0");
  expect(new Set(readChanges(text).map((change) => JSON.stringify(merged([change]))))).toEqual(
    new Set(all.map((change) => JSON.stringify(merged([change])))),
  );
});

test("nonsense in an address is left out", () => {
  expect(readChanges("zero:2-0;boom:1-1;zero:x;__proto__:1-1;;cut:1-1q%k2")).toEqual([ZERO]);
});

test("changes at tokens follow them into an edited text, or are let go", () => {
  const [before, after] = [pageOf("we went home"), pageOf("then we went")].map(({ page }) => page.stacks);
  const change = (queries: number[], keys: number[]): ModelChange => ({ do: "cut", layer: 0, queries, keys });
  const { kept, lost } = followed([ZERO, change([1], [0])], before, after);
  expect([kept, lost]).toEqual([[ZERO, change([], [])].slice(0, 1), [change([1], [0])]]);
  const longer = pageOf("well we went home").page.stacks;
  expect(followed([change([2], [0])], before, longer).kept).toEqual([change([3], [0])]);
});

test("a change says what it does, and with which words", () => {
  const [stack] = pageOf("we went home").page.stacks;
  expect(changeWords(ZERO, stack)).toBe("silence 2-0");
  expect(changeWords({ ...CUT, queries: [3] }, stack)).toBe("cut 5-1: home → [CLS]");
  expect(changeWords({ do: "uniform", layer: 1, stack: "cross" }, stack, true)).toBe("make uniform cross layer 1");
  expect(changeWords({ do: "patch", layer: 1, heads: [2], from: "another" }, stack)).toBe("patch 1-2 from “another”");
});

test("a text and its changes stand in the fragment, as far as they fit", () => {
  const asked = { input: { text: "a & b=c; 100 %", text_b: "" }, changes: [ZERO] };
  expect(readAsked(`v=2&view=head&${writeAsked(asked)}`)).toEqual(asked);
  expect(isInAddress(asked)).toBe(true);
  const long = { input: { text: "a".repeat(2001) }, changes: [] };
  expect([writeAsked(long), isInAddress(long)]).toEqual(["", false]);
  expect(readAsked("v=2&view=head")).toBeNull();
  const chat = { input: { messages: [{ role: "user", content: "hi" }] }, changes: [] };
  expect(readAsked(writeAsked(chat))).toEqual(chat);
  expect(readAsked("messages=[")).toBeNull();
});

test("the line of Python says the texts and the changes", () => {
  expect(pythonLine({ text: 'say "a"' }, "")).toBe('record = hs.capture(model, tokenizer, "say \\"a\\"")');
  expect(pythonLine({ text: "a", text_b: "b" }, "interventions=[]")).toBe(
    'effect = hs.effect(model, tokenizer, "a", "b", interventions=[])',
  );
  expect(pythonLine({ messages: [{ role: "user", content: "hi" }] }, "")).toBe(
    'record = hs.capture(model, tokenizer, [{"role": "user", "content": "hi"}])',
  );
});
