import { expect, test } from "vitest";
import { bound, count, counted, magnitude, percent, shortWeight } from "../../src/state/words";

test("weights are short and never look like none", () => {
  expect([1, 0.994, 0.21, 0.01, 0.00999, 0.0049, 0.0004, 0].map(shortWeight)).toEqual([
    "1.0",
    ".99",
    ".21",
    ".01",
    ".01",
    ".005",
    "<.001",
    "0",
  ]);
});

test("percentages are not rounded to nothing or everything", () => {
  expect([0, 0.001, 0.864, 0.996, 0.99999, 1].map(percent)).toEqual(["0 %", "<1 %", "86 %", ">99 %", "100 %", "100 %"]);
});

test("a bound is rounded up", () => {
  expect([0.00389, 0.0039, 0.00301, 0.05, 0].map(bound)).toEqual([".0039", ".0039", ".0031", ".050", "0"]);
  expect(bound(0.0000123)).toBe("1.3e-5");
});

test("counts have their noun", () => {
  expect([counted(1, "head"), counted(12, "head"), counted(1120, "line")]).toEqual([
    "1 head",
    "12 heads",
    "1,120 lines",
  ]);
  expect([0, 999, 1000, 28443, 100200, 1234567].map(count)).toEqual([
    "0",
    "999",
    "1,000",
    "28,443",
    "100,200",
    "1,234,567",
  ]);
  expect([magnitude(1.9e-6), magnitude(0)]).toEqual(["2e-6", "0"]);
});
