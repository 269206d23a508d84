import { expect, test } from "vitest";
import { fromBase64, gunzip, PageError, unpack } from "../../src/source/source";
import { gzip, toBase64 } from "../examples/inline";

const BYTES = Uint8Array.from([0, 1, 127, 128, 255, 60, 47]);

test("base64 becomes the same bytes with and without the browser's own decoder", () => {
  expect([...fromBase64(toBase64(BYTES))]).toEqual([...BYTES]);
  const native = Object.getOwnPropertyDescriptor(Uint8Array, "fromBase64");
  Object.defineProperty(Uint8Array, "fromBase64", { value: undefined, configurable: true });
  expect([...fromBase64(toBase64(BYTES))]).toEqual([...BYTES]);
  if (native) Object.defineProperty(Uint8Array, "fromBase64", native);
});

test("gzip is unpacked", async () => {
  const large = Uint8Array.from({ length: 300_001 }, (_, i) => (i * i) % 251);
  const unpacked = await gunzip(await gzip(large));
  expect(unpacked).toHaveLength(large.length);
  expect(unpacked.every((byte, i) => byte === large[i])).toBe(true);
  expect([...(await unpack("x", `\n${toBase64(await gzip(BYTES))}\n`))]).toEqual([...BYTES]);
});

test.each([
  ["cut off", async () => toBase64((await gzip(BYTES)).subarray(0, 15))],
  ["no gzip", async () => toBase64(BYTES)],
  ["no base64", async () => "%%%"],
])("a chunk that is %s gives one error that names it", async (_, text) => {
  const failure = unpack("weights/self/3", await text());
  await expect(failure).rejects.toThrow(PageError);
  await expect(failure).rejects.toThrow(/weights\/self\/3.*damaged/);
});
