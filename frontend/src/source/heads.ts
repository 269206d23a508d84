import type { Page, PageArray, PageEvidence, PageKinds, PageStack } from "../../types/page";
import { type Raster, rasterOf } from "../draw/patches";
import { type LiftThumbs, liftThumbs } from "../draw/thumbs";
import { arraySize, checkedBytes, floats, readLayers } from "./layers";
import { PageError, type Source } from "./source";

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

/** Thumbnails of a stack, multiples of the even share: head number layer * heads + head. */
export interface Thumbs {
  readonly stack: PageStack;
  readonly lifts: LiftThumbs;
  /** Layers that are still to come; their thumbnails are empty. */
  readonly left: number;
}

/** Loads the thumbnails of a stack and shows them as they come, from this layer on; ends where `show` gives false. */
export async function loadThumbs(
  source: Source,
  stack: PageStack,
  first: number,
  show: (loaded: Thumbs) => boolean,
): Promise<void> {
  const { thumbs } = stack;
  const [layers, heads, queries, keys] = thumbs.shape;
  const size = queries * keys;
  const all = new Uint8Array(arraySize(thumbs));
  const bytesOf = (head: number) => all.subarray(head * size, (head + 1) * size);
  const shape = { heads: layers * heads, queries, keys };
  await readLayers(source, thumbs, first, (part, bytes, start, left) => {
    all.set(checkedBytes(part, bytes), start);
    return show({ stack, lifts: liftThumbs(bytesOf, shape, stack.key.labels.length), left });
  });
}

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

/** The pictures whose patches the tokens are: of the record that is shown, or of both that are compared. */
export type Pictures = readonly (readonly Raster[])[];

export const NO_PICTURES: Pictures = [[]];

/** Loads the pictures of a page; gives those that belong to a quantity, of the same one always the same. */
export async function loadPictures(source: Source): Promise<(quantity: string) => Pictures> {
  const { pictures = [], other_pictures: others } = source.header;
  const own = await Promise.all(pictures.map((array) => load(source, array)));
  const all = [own];
  if (!others) return () => all;
  const other = await Promise.all(others.map((array) => load(source, array)));
  const both = [other, own];
  const known = new Map([
    ["other", [other]],
    ["difference", both],
    ["effect", both],
  ]);
  return (quantity) => known.get(quantity) ?? all;
}

async function load(source: Source, array: PageArray): Promise<Raster> {
  const [height, width] = array.shape;
  return rasterOf(checkedBytes(array, await source.chunk(array.chunk)), width, height);
}
