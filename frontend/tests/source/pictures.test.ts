import { expect, test } from "vitest";
import { type Example, examplePage, exampleSource } from "../../src/examples/page";
import { loadPictures } from "../../src/source/pictures";

const PICTURE = { chunk: "picture/0", axes: ["row", "column", "channel"], shape: [1, 2, 3] };

function pictured(bytes: readonly number[]): Example {
  const { page, chunks } = examplePage();
  const pictures = [{ ...PICTURE, dtype: "uint8" as const, encoding: "plain" as const }];
  return { page: { ...page, pictures }, chunks: new Map([...chunks, ["picture/0", Uint8Array.from(bytes)]]) };
}

test("pictures come with their sides the right way round", async () => {
  const [picture] = await loadPictures(exampleSource(pictured([9, 8, 7, 6, 5, 4])));
  expect([picture.width, picture.height]).toEqual([2, 1]);
  expect([...picture.pixels]).toEqual([9, 8, 7, 255, 6, 5, 4, 255]);
});

test("a page without pictures has none, and one that was cut says so", async () => {
  expect(await loadPictures(exampleSource(examplePage()))).toEqual([]);
  await expect(loadPictures(exampleSource(pictured([9, 8])))).rejects.toThrow(/holds 2 bytes; .* need 6/);
});
