import type { PageStack } from "../contract/page";
import { type LiftThumbs, liftThumbs } from "../draw/thumbs";
import { arraySize, checkedBytes, partOf } from "./arrays";
import type { Source } from "./source";

/** How many layers' thumbnails are asked for at a time. */
const AT_ONCE = 3;

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
  const made = (bytes: Uint8Array) =>
    liftThumbs(
      (head) => bytes.subarray(head * size, (head + 1) * size),
      { heads: layers * heads, queries, keys },
      stack.key.labels.length,
    );
  if (!thumbs.split) {
    const bytes = checkedBytes(thumbs, await source.chunk(thumbs.chunk));
    show({ stack, lifts: made(bytes), left: 0 });
    return;
  }
  const all = new Uint8Array(arraySize(thumbs));
  const order = [...Array(layers).keys()].sort((a, b) => Math.abs(a - first) - Math.abs(b - first));
  let left = layers;
  let wanted = true;
  const worker = async () => {
    for (let row = order.shift(); row !== undefined && wanted; row = order.shift()) {
      const part = partOf(thumbs, row);
      all.set(checkedBytes(part, await source.chunk(part.chunk)), row * arraySize(part));
      left--;
      wanted = show({ stack, lifts: made(all), left });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
