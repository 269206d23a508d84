import { expect, test } from "vitest";
import { checksum, withWords } from "../../src/views/app/FigureMenu";

test("the checksum is that of the PNG specification", () => {
  expect(checksum(new TextEncoder().encode("IEND"))).toBe(0xae426082);
  expect(checksum(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
});

test("words stand behind the header, and all else stays", async () => {
  const png = Uint8Array.from({ length: 60 }, (_, at) => at);
  const found = new Uint8Array(await withWords(png, { Title: "über 中" }).arrayBuffer());
  const added = found.length - png.length;
  expect(found.subarray(0, 33)).toEqual(png.subarray(0, 33));
  expect(found.subarray(33 + added)).toEqual(png.subarray(33));
  const chunk = found.subarray(33, 33 + added);
  const view = new DataView(chunk.buffer, chunk.byteOffset);
  const length = view.getUint32(0);
  expect(length).toBe(added - 12);
  expect(new TextDecoder().decode(chunk.subarray(4, 8 + length))).toBe("iTXtTitle\0\0\0\0\0über 中");
  expect(view.getUint32(8 + length)).toBe(checksum(chunk.subarray(4, 8 + length)));
});
