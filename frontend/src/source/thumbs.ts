import type { PageStack } from "../contract/page";
import { type LiftThumbs, liftThumbs } from "../draw/thumbs";
import { arraySize, checkedBytes, readLayers } from "./arrays";
import type { Source } from "./source";

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
