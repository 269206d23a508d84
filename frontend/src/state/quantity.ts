import type { Page, PageLayer, PageQuantity, PageStack } from "../contract/page";
import { BUILT_IN } from "../contract/values";
import { amount, shortWeight, signedNumber, signedWeight, times } from "./words";

// What every page can show, and with queries and keys; the page itself says what else it has.

/** A quantity as it is printed. */
export interface Quantity extends PageQuantity {
  /** With many tokens: what a weight is told as a multiple of, the even share of a key. */
  readonly even?: number;
}

/** From so many tokens on weights are told as multiples of the even share: most would be "<.001". */
const MANY = 200;

/** Weights among many keys, as multiples of what each would get if all got the same. */
export function amongMany(facts: PageQuantity, keys: number): Quantity {
  return facts.name === "weight" && !facts.signed && keys >= MANY ? { ...facts, even: 1 / keys } : facts;
}

export const WEIGHT_FACTS = BUILT_IN.weight;

/** The quantities that some layer of a stack has; of a comparison the weights are called after their record. */
export function quantitiesOf(page: Page, { layers }: PageStack): PageQuantity[] {
  const further = page.quantities ?? [];
  const weight = further.find(({ name }) => name === WEIGHT_FACTS.name) ?? WEIGHT_FACTS;
  const known = [weight, BUILT_IN.score, ...further.filter((facts) => facts !== weight)];
  return known.filter(({ name }) => layers.some((layer) => hasQuantity(layer, name)));
}

export function hasQuantity({ later, has, scores, value_norms: norms, quantities }: PageLayer, name: string): boolean {
  if (name === "weight") return true;
  if (later) return has?.includes(name) ?? false;
  if (name === "score") return scores !== null;
  return Object.hasOwn(quantities ?? {}, name) || (name === "contribution" && norms !== undefined);
}

/** How a quantity's values are printed. */
export function valueText({ name, signed, even }: Quantity): (value: number) => string {
  if (even) return (value) => times(value / even);
  return name === "weight" ? shortWeight : name === "difference" ? signedWeight : signed ? signedNumber : amount;
}

/** Marks of a scale that ends at `top`: for both signs in the middle and at the ends, else on square roots. */
export function ticksOf(facts: Quantity, top: number): (readonly [part: number, text: string])[] {
  const text = valueText(facts);
  if (facts.signed) {
    return [
      [0, text(-top)],
      [0.5, "0"],
      [1, text(top)],
    ];
  }
  const { even } = facts;
  // From the even share to the largest value, on square roots, as the colours are.
  if (even) return [0, 0.25, 1].map((part) => [Math.sqrt(part), text(even + part * Math.max(0, top - even))]);
  return [0, 0.05, 0.25, 0.5, 1].map((part) => [Math.sqrt(part), part === 0 ? "0" : text(part * top)]);
}
