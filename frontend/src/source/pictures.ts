import { type Raster, rasterOf } from "../draw/patches";
import { checkedBytes } from "./arrays";
import type { Source } from "./source";

/** The pictures of a page, whose patches its tokens are; none where it has none. */
export function loadPictures(source: Source): Promise<Raster[]> {
  return Promise.all(
    (source.header.pictures ?? []).map(async (array) => {
      const [height, width] = array.shape;
      return rasterOf(checkedBytes(array, await source.chunk(array.chunk)), width, height);
    }),
  );
}
