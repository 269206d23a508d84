import type { PageMoved, PageQuantity } from "../contract/page";
import { arrayValues, type LayerValues } from "../draw/values";
import { amount, magnitude } from "./words";

/** How far heads moved, as a quantity of whole heads. */
export function movedFacts({ label }: PageMoved): PageQuantity {
  return { name: "moved", label, explanation: label, signed: false, per: "head" };
}

/** How far heads moved, each a thumbnail of one value; 0 where it is not told. */
export function movedThumbs({ values }: PageMoved): LayerValues {
  const numbers = Float32Array.from(values.flat(), (value) => value ?? 0);
  return arrayValues(numbers, { heads: numbers.length, queries: 1, keys: 1 }, false);
}

/** ".21", ".004", "3e-5" */
export function distance(value: number): string {
  return value > 0 && value < 0.0005 ? magnitude(value) : amount(value);
}

/** How far one head moved, in words. */
export function movedWords({ values, within, changed }: PageMoved, layer: number, head: number): string {
  const value = values[layer][head];
  if (changed[layer][head]) return "changed on purpose";
  if (value === null) return "";
  return `moved ${distance(value)} nats${within[layer][head] ? ", within the spread" : ""}`;
}
