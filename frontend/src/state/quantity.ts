import { BUILT_IN } from "../../contract/values";
import type { Page, PageLayer, PageQuantity, PageStack } from "../../types/page";
import { liftOf } from "../draw/values";
import { amount, shortWeight, signedNumber, signedWeight, times } from "./words";

// What every page can show, and with queries and keys; the page itself says what else it has.

/** From so many keys on a weight is told as a multiple of its even share: most would be "<.001". */
const MANY = 200;

/** Weights of a model, whose colours and multiples are of what even attention gives. */
export function isShare({ name, signed }: PageQuantity): boolean {
  return name === "weight" && !signed;
}

export const WEIGHT_FACTS = BUILT_IN.weight;

/**
 * A value and what stands pale beside it: a weight and how often the even share that is; among many keys the other way
 * round. Other quantities stand alone.
 */
export function numberPair(facts: PageQuantity, keys: number): (value: number, even: number) => [string, string] {
  const text = valueText(facts);
  if (!isShare(facts)) return (value) => [text(value), ""];
  return (value, even) => {
    const both: [string, string] = [text(value), times(liftOf(value, even))];
    return keys >= MANY ? [both[1], both[0]] : both;
  };
}

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
export function valueText({ name, signed }: PageQuantity): (value: number) => string {
  return name === "weight" ? shortWeight : name === "difference" ? signedWeight : signed ? signedNumber : amount;
}

/** Marks that stand evenly. */
export function evenly(texts: readonly string[]): (readonly [part: number, text: string])[] {
  return texts.map((text, at) => [at / (texts.length - 1), text]);
}

/** Marks of a scale that ends at `top`: for both signs in the middle and at the ends, else on square roots. */
export function ticksOf(facts: PageQuantity, top: number): (readonly [part: number, text: string])[] {
  const text = valueText(facts);
  if (facts.signed) return evenly([text(-top), "0", text(top)]);
  return [0, 0.05, 0.25, 0.5, 1].map((part) => [Math.sqrt(part), part === 0 ? "0" : text(part * top)]);
}

/** Marks of a scale of multiples of the even share, whose last colour is `top` times. */
export function liftTicks(top: number): (readonly [part: number, text: string])[] {
  const middle = 2 ** Math.round(Math.log2(top) / 2);
  return [1, middle, top].map((lift) => [Math.log2(lift) / Math.log2(top), times(lift).replace(".0", "")]);
}
