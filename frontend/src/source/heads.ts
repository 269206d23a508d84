import type { PageArray } from "../contract/page";
import { arraySize, checkedBytes, floats, partOf } from "./arrays";
import type { Source } from "./source";

/** An array of which each entry of the outermost axis is there when it was asked for, or all of them at once. */
export interface Parts<Numbers> {
  /** All entries; those that were not asked for are zero. */
  readonly numbers: Numbers;
  need(at: number): Promise<void>;
}

/** Numbers of 16 or 32 bits, filled in as they come. */
export async function floatParts(source: Source, array: PageArray): Promise<Parts<Float32Array>> {
  if (!array.split) {
    const numbers = floats(array, await source.chunk(array.chunk));
    return { numbers, need: async () => undefined };
  }
  const numbers = new Float32Array(arraySize(array));
  const need = fetching(async (at) => {
    const part = partOf(array, at);
    numbers.set(floats(part, await source.chunk(part.chunk)), at * arraySize(part));
  });
  return { numbers, need };
}

/** Bytes, each entry an array of its own: many are never asked for. */
export async function byteParts(source: Source, array: PageArray): Promise<Parts<readonly Uint8Array[]>> {
  const size = arraySize(array) / array.shape[0];
  if (!array.split) {
    const bytes = checkedBytes(array, await source.chunk(array.chunk));
    const numbers = Array.from({ length: array.shape[0] }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
    return { numbers, need: async () => undefined };
  }
  const numbers: Uint8Array[] = [];
  const need = fetching(async (at) => {
    const part = partOf(array, at);
    numbers[at] = checkedBytes(part, await source.chunk(part.chunk));
  });
  return { numbers, need };
}

/** Fetches each entry once; one that failed may be asked for again. */
function fetching(fetch: (at: number) => Promise<void>): (at: number) => Promise<void> {
  const asked = new Map<number, Promise<void>>();
  return (at) => {
    const fetched =
      asked.get(at) ??
      fetch(at).catch((error) => {
        asked.delete(at);
        throw error;
      });
    asked.set(at, fetched);
    return fetched;
  };
}
