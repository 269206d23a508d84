import type { PageArray } from "../contract/page";
import { PageError } from "./errors";

const BYTES: Readonly<Record<PageArray["dtype"], number>> = { uint8: 1, float16: 2, float32: 4, int32: 4 };

export function arraySize({ shape }: PageArray): number {
  return shape.reduce((product, size) => product * size, 1);
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
  return Float32Array.from(halves, (half) => HALVES[half]);
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

/** The value of every number in half precision. */
const HALVES = Float32Array.from({ length: 2 ** 16 }, (_, half) => {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
});
