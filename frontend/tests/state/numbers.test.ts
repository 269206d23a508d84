import { expect, test } from "vitest";
import { numberList, readNumberList } from "../../src/state/numbers";
import { liftTicks, toldText, WEIGHT_FACTS } from "../../src/state/quantity";
import { directionOf, isUpright } from "../../src/state/script";

const KNOWN = [0, 1, 2, 3, 17, 18, 20];

test.each([
  ["3, 17", [3, 17]],
  ["17 3;0", [0, 3, 17]],
  ["1-3, 17-99", [1, 2, 3, 17, 18, 20]],
  ["4", []],
  ["", []],
])("%j names heads", (text, wanted) => {
  expect(readNumberList(text, KNOWN)).toEqual(wanted);
});

test.each(["three", "1-", "-1", "1.5", "<img>"])("%j is no list of numbers", (text) => {
  expect(readNumberList(text, KNOWN)).toBeNull();
});

test("numbers are written as they are read", () => {
  expect(numberList([0, 1, 2, 5, 17, 18])).toBe("0-2, 5, 17-18");
  expect(numberList([])).toBe("");
});

test("from 200 keys on a weight is told as a multiple of the even share", () => {
  expect(toldText(WEIGHT_FACTS, 199)(0.5, 0.005)).toBe(".50");
  const print = toldText(WEIGHT_FACTS, 400);
  expect([0.0775, 0.003, 0.001, 0.0001, 0, 1].map((weight) => print(weight, 1 / 400))).toEqual([
    ...["31 ×", "1.2 ×", ".4 ×", "<.1 ×", "0 ×", "400 ×"],
  ]);
  expect(print(0.02, 1 / 50)).toBe("1.0 ×");
  expect(liftTicks(64)).toEqual([
    [0, "1 ×"],
    [0.5, "8 ×"],
    [1, "64 ×"],
  ]);
});

test("the scripts of a text tell how it is laid out", () => {
  const of = (labels: string[]) => ({ labels, special: labels.map((label) => label.startsWith("[")) });
  expect(directionOf(of(["[CLS]", "في", "البداية", "a"]))).toBe("rtl");
  expect(directionOf(of(["[CLS]", "the", "שלום", "cat"]))).toBe("ltr");
  expect(isUpright(of(["[CLS]", "我", "去", "商店", "[SEP]"]))).toBe(true);
  expect(isUpright(of(["[CLS]", "ok", "店"]))).toBe(false);
  expect(isUpright(of([]))).toBe(false);
});
