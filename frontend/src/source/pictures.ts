import type { PageArray } from "../contract/page";
import { type Raster, rasterOf } from "../draw/patches";
import { checkedBytes } from "./arrays";
import type { Source } from "./source";

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
