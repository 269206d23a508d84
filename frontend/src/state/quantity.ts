import type { Page, PageLayer, PageQuantity, PageStack } from "../contract/page";
import { amount, shortWeight, signedNumber, signedWeight } from "./words";

// What every page can show, and with queries and keys; the page itself says what else it has.

export const WEIGHT_FACTS: PageQuantity = {
  name: "weight",
  label: "weight",
  explanation: "softmax of the scores",
  signed: false,
  per: "head",
};

const SCORE_FACTS: PageQuantity = {
  name: "score",
  label: "score",
  explanation: "what goes into the softmax, which sees differences within a row",
  signed: true,
  per: "head",
};

/** The quantities that some layer of a stack has; of a comparison the weights are called after their record. */
export function quantitiesOf(page: Page, { layers }: PageStack): PageQuantity[] {
  const further = page.quantities ?? [];
  const weight = further.find(({ name }) => name === WEIGHT_FACTS.name) ?? WEIGHT_FACTS;
  const known = [weight, SCORE_FACTS, ...further.filter((facts) => facts !== weight)];
  return known.filter(({ name }) => layers.some((layer) => hasQuantity(layer, name)));
}

export function hasQuantity({ later, has, scores, value_norms: norms, quantities }: PageLayer, name: string): boolean {
  if (name === "weight") return true;
  if (later) return has?.includes(name) ?? false;
  if (name === "score") return scores !== null;
  return Object.hasOwn(quantities ?? {}, name) || (name === "contribution" && norms !== undefined);
}

/** How a quantity's values are printed. */
export function valueText({ name, signed }: PageQuantity): (value: number) => string {
  return name === "weight" ? shortWeight : name === "difference" ? signedWeight : signed ? signedNumber : amount;
}

/** Marks of a scale that ends at `top`: for both signs in the middle and at the ends, else on square roots. */
export function ticksOf(facts: PageQuantity, top: number): (readonly [part: number, text: string])[] {
  const text = valueText(facts);
  if (facts.signed) {
    return [
      [0, text(-top)],
      [0.5, "0"],
      [1, text(top)],
    ];
  }
  return [0, 0.05, 0.25, 0.5, 1].map((part) => [Math.sqrt(part), part === 0 ? "0" : text(part * top)]);
}
