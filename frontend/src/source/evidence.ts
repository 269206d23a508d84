import type { Page, PageArray, PageEvidence, PageStack } from "../contract/page";
import { checkedBytes, floats } from "./arrays";
import { PageError } from "./errors";
import type { Source } from "./source";

/** What is known of the heads of one stack; a head is numbered row * columns + column, as its thumbnail is. */
export interface Evidence {
  readonly said: PageEvidence;
  readonly stack: PageStack;
  /** Axes pattern, head. */
  readonly status: Uint8Array;
  /** Axes number, pattern, head. */
  readonly numbers: Float32Array;
  /** Axes measure, head. */
  readonly values: Float32Array;
}

/** The numbers that stand behind a label, in this order. */
export const NUMBERS = ["score", "low", "high", "baseline", "effect", "corrected", "texts"] as const;

/** The evidence of a page, where it has some. */
export async function loadEvidence(source: Source, page: Page): Promise<Evidence | null> {
  const said = page.evidence;
  if (!said) return null;
  const stack = page.stacks.find(({ name }) => name === said.stack);
  if (!stack) throw new PageError(`The evidence of this page is of “${said.stack}”, which is not in it.`);
  const grid = [stack.layers.length, stack.heads];
  const bytes = async (array: PageArray, ...shape: readonly number[]) => {
    if (array.shape.join() !== shape.join()) {
      throw new PageError(`“${array.chunk}” has the shape ${array.shape.join(" × ")}; wanted is ${shape.join(" × ")}.`);
    }
    return checkedBytes(array, await source.chunk(array.chunk));
  };
  const patterns = said.patterns.length;
  const [status, numbers, values] = await Promise.all([
    bytes(said.status, patterns, ...grid),
    bytes(said.numbers, NUMBERS.length, patterns, ...grid),
    bytes(said.values, said.measures.length, ...grid),
  ]);
  return {
    said,
    stack,
    status,
    numbers: floats(said.numbers, numbers),
    values: floats(said.values, values),
  };
}
