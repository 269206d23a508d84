import type { PageKinds, PageStack } from "../contract/page";
import { arraySize, floats, readLayers } from "./arrays";
import { PageError } from "./errors";
import type { Source } from "./source";

/** The numbers of the heads of a stack; a head is numbered row * heads + head, as its thumbnail is. */
export interface LoadedKinds {
  readonly stack: PageStack;
  readonly said: PageKinds;
  /** Axes head, column; NaN for heads that are still to come. */
  readonly values: Float32Array;
  /** Layers that are still to come. */
  readonly left: number;
  /** With evidence: over how many texts, and what each head does over them in place of what it does here. */
  readonly over?: { readonly texts: number; readonly kinds: readonly string[]; readonly scores: readonly number[] };
}

/** Loads what the heads of a stack do, a layer at a time where it comes in parts; ends where `show` gives false. */
export async function loadKinds(
  source: Source,
  stack: PageStack,
  first: number,
  show: (loaded: LoadedKinds) => boolean,
): Promise<void> {
  const said = stack.kinds;
  if (!said) return;
  const [layers, heads, columns] = said.values.shape;
  if (layers !== stack.layers.length || heads !== stack.heads || columns !== said.columns.length) {
    const shape = said.values.shape.join(" × ");
    throw new PageError(`What heads do has the shape ${shape}, which does not fit the stack “${stack.name}”.`);
  }
  const values = new Float32Array(arraySize(said.values)).fill(Number.NaN);
  await readLayers(source, said.values, first, (part, bytes, start, left) => {
    values.set(floats(part, bytes), start);
    return show({ stack, said, values, left });
  });
}
