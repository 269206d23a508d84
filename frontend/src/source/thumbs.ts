import type { PageStack } from "../contract/page";
import { byteWeights, type LayerWeights } from "../draw/weights";
import { checkedBytes } from "./arrays";
import type { Source } from "./source";

/** The thumbnails of a stack as weights: head number layer * heads + head. */
export async function loadThumbs(source: Source, { thumbs }: PageStack): Promise<LayerWeights> {
  const [layers, heads, queries, keys] = thumbs.shape;
  const bytes = checkedBytes(thumbs, await source.chunk(thumbs.chunk));
  return byteWeights(bytes, { heads: layers * heads, queries, keys });
}
