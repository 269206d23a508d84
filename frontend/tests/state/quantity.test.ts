import { expect, test } from "vitest";
import { hasQuantity, quantitiesOf, ticksOf, valueText, WEIGHT_FACTS } from "../../src/state/quantity";
import { fitSelection, pageSelection } from "../../src/state/selection";
import { examplePage } from "../examples/page";
import { CONTRIBUTION, DIFFERENCE, quantityPage, ROLLOUT } from "../quantities";

const names = (example: ReturnType<typeof examplePage>, at = 0) =>
  quantitiesOf(example.page, example.page.stacks[at]).map(({ name }) => name);

test("a page offers what some layer of the stack has, and nothing else", () => {
  expect(names(examplePage())).toEqual(["weight"]);
  expect(names(examplePage({ form: "scores" }))).toEqual(["weight", "score"]);
  expect(names(quantityPage())).toEqual(["weight", "contribution", "rollout", "difference"]);
  const { page } = examplePage();
  expect(quantitiesOf({ ...page, quantities: [ROLLOUT] }, page.stacks[0])).toEqual([WEIGHT_FACTS]);
});

test("weights come first, by the name that a comparison gives them", () => {
  const { page } = quantityPage();
  const weight = { ...WEIGHT_FACTS, label: "weight after" };
  const found = quantitiesOf({ ...page, quantities: [...(page.quantities ?? []), weight] }, page.stacks[0]);
  expect(found.map(({ label }) => label)).toEqual(["weight after", "contribution", "rollout", "difference"]);
});

test("a layer has what its arrays say", () => {
  const { layers } = quantityPage().page.stacks[0];
  expect(["weight", "score", "contribution", "rollout", "effect"].map((name) => hasQuantity(layers[0], name))).toEqual([
    true,
    false,
    true,
    true,
    false,
  ]);
  expect(hasQuantity(layers[2], "rollout")).toBe(false);
});

test("an unknown quantity becomes weights", () => {
  const { page } = quantityPage();
  const start = pageSelection(page);
  expect(fitSelection({ ...start, quantity: "rollout" }, page).quantity).toBe("rollout");
  for (const unknown of ["score", "mass", ""]) {
    expect(fitSelection({ ...start, quantity: unknown }, page).quantity).toBe("weight");
  }
});

test("numbers are printed as their quantity needs", () => {
  expect([0.214, 1, 0.0004].map(valueText(WEIGHT_FACTS))).toEqual([".21", "1.0", "<.001"]);
  expect([0.214, 1, 2.5, 321.4, 0].map(valueText(CONTRIBUTION))).toEqual([".21", "1.00", "2.50", "321", "0"]);
  expect([-0.214, 12, -0.001, 0].map(valueText(DIFFERENCE))).toEqual(["−.21", "+12.00", "−.001", "0"]);
  const score = { ...DIFFERENCE, name: "score" };
  expect([-0.214, 12, -0.001].map(valueText(score))).toEqual(["−0.21", "12.00", "0.00"]);
});

test("a scale has 0 at its left, or in the middle where there are both signs", () => {
  expect(ticksOf(DIFFERENCE, 4)).toEqual([
    [0, "−4.00"],
    [0.5, "0"],
    [1, "+4.00"],
  ]);
  const ticks = ticksOf(CONTRIBUTION, 4);
  expect([ticks[0], ticks[2], ticks[4]]).toEqual([
    [0, "0"],
    [0.5, "1.00"],
    [1, "4.00"],
  ]);
});
