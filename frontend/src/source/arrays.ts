import type { PageArray } from "../contract/page";
import { PageError } from "./errors";
import type { Source } from "./source";

const BYTES: Readonly<Record<PageArray["dtype"], number>> = { uint8: 1, float16: 2, float32: 4, int32: 4 };

export function arraySize({ shape }: PageArray): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** One entry of the outermost axis of an array that comes in parts, as an array of its own. */
export function partOf(array: PageArray, at: number): PageArray {
  const { split, ...rest } = array;
  return split ? { ...rest, chunk: `${array.chunk}/${at}`, shape: [1, ...array.shape.slice(1)] } : array;
}

/** How many layers are asked for at a time. */
const AT_ONCE = 3;

/**
 * Reads an array of layers as it comes, from one of them on: `show` is told what came, where it begins, and how many
 * layers are still to come; it ends where that gives false.
 */
export async function readLayers(
  source: Source,
  array: PageArray,
  first: number,
  show: (part: PageArray, bytes: Uint8Array<ArrayBuffer>, start: number, left: number) => boolean,
): Promise<void> {
  if (!array.split) {
    show(array, await source.chunk(array.chunk), 0, 0);
    return;
  }
  let [left, wanted] = [array.shape[0], true];
  const order = [...Array(left).keys()].sort((a, b) => Math.abs(a - first) - Math.abs(b - first));
  const worker = async () => {
    for (let row = order.shift(); row !== undefined && wanted; row = order.shift()) {
      const part = partOf(array, row);
      const bytes = await source.chunk(part.chunk);
      if (wanted) wanted = show(part, bytes, row * arraySize(part), --left);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** The bytes of an array, where there are as many as its shape and type need. */
export function checkedBytes(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const wanted = arraySize(array) * BYTES[array.dtype];
  if (bytes.length !== wanted) {
    throw new PageError(
      `“${array.chunk}” holds ${bytes.length} bytes; ${array.axes.join(" × ")} = ${array.shape.join(" × ")} of ` +
        `${array.dtype} need ${wanted}. The file is damaged. Write it again.`,
    );
  }
  return bytes;
}

/** Numbers of 16 or 32 bits as single precision. */
export function floats(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Float32Array {
  const { buffer, byteOffset } = checkedBytes(array, bytes);
  if (array.dtype === "float32") return new Float32Array(buffer, byteOffset, arraySize(array));
  if (array.dtype !== "float16")
    throw new PageError(`“${array.chunk}” is ${array.dtype}; wanted is float16 or float32.`);
  const halves = new Uint16Array(buffer, byteOffset, arraySize(array));
  const table = valueOfHalves();
  const numbers = new Float32Array(halves.length);
  for (let at = 0; at < halves.length; at++) numbers[at] = table[halves[at]];
  return numbers;
}

/** The numbers of an array, whichever way they are stored. */
export function decoded(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Float32Array {
  const { dtype, encoding, most = 1 } = array;
  if (dtype !== "uint8") return floats(array, bytes).map((value) => value * most);
  const zero = encoding === "signed" ? 128 : 0;
  const values = Float32Array.from({ length: 256 }, (_, byte) => {
    const root = (byte - zero) / (255 - zero);
    return most * root * Math.abs(root);
  });
  return Float32Array.from(checkedBytes(array, bytes), (byte) => values[byte]);
}

export function integers(array: PageArray, bytes: Uint8Array<ArrayBuffer>): Int32Array {
  const { buffer, byteOffset } = checkedBytes(array, bytes);
  return new Int32Array(buffer, byteOffset, arraySize(array));
}

let halves: Float32Array | undefined;

/** The value of every number in half precision. */
function valueOfHalves(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(2 ** 16);
  for (let exponent = 0; exponent < 32; exponent++) {
    const step = 2 ** (Math.max(1, exponent) - 25);
    for (let fraction = 0; fraction < 1024; fraction++) {
      const finite = (exponent === 0 ? fraction : 1024 + fraction) * step;
      const value = exponent < 31 ? finite : fraction ? Number.NaN : Number.POSITIVE_INFINITY;
      const half = 1024 * exponent + fraction;
      halves[half] = value;
      halves[half + 2 ** 15] = -value;
    }
  }
  return halves;
}
