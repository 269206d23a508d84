import { expect, test } from "vitest";
import { loadPictures } from "../../src/source/heads";
import { type Example, examplePage, exampleSource } from "../examples/page";

function pictured(bytes: readonly number[], other?: readonly number[]): Example {
  const { page, chunks } = examplePage();
  const array = (chunk: string) => [
    {
      chunk,
      axes: ["row", "column", "channel"],
      shape: [1, 2, 3],
      dtype: "uint8" as const,
      encoding: "plain" as const,
    },
  ];
  const found = new Map([...chunks, ["own", Uint8Array.from(bytes)]]);
  if (other) found.set("other", Uint8Array.from(other));
  const others = other && { other_pictures: other.length > 0 ? array("other") : [] };
  return { page: { ...page, pictures: array("own"), ...others }, chunks: found };
}

const OWN = [9, 8, 7, 6, 5, 4];
const OTHER = [1, 1, 1, 2, 2, 2];

test("pictures come with their sides the right way round, one set whatever is shown", async () => {
  const of = await loadPictures(exampleSource(pictured(OWN)));
  const [[picture], ...more] = of("weight");
  expect(more).toEqual([]);
  expect([picture.width, picture.height]).toEqual([2, 1]);
  expect([...picture.pixels]).toEqual([9, 8, 7, 255, 6, 5, 4, 255]);
  for (const quantity of ["other", "difference", "constructor"]) expect(of(quantity)).toBe(of("weight"));
});

test("of a comparison each record has its own, and what is of both has both", async () => {
  const of = await loadPictures(exampleSource(pictured(OWN, OTHER)));
  const firsts = (quantity: string) => of(quantity).map(([picture]) => picture.pixels[0]);
  expect(["weight", "score", "other", "difference", "effect"].map(firsts)).toEqual([[9], [9], [1], [1, 9], [1, 9]]);
  // The same array again and again, so that what is drawn of it stays.
  for (const quantity of ["weight", "other", "difference"]) expect(of(quantity)).toBe(of(quantity));
  expect(of("effect")).toBe(of("difference"));
});

test("a record without pictures has none beside one that has", async () => {
  const of = await loadPictures(exampleSource(pictured(OWN, [])));
  expect(of("other")).toEqual([[]]);
  expect(of("difference").map(({ length }) => length)).toEqual([0, 1]);
});

test("a page without pictures has none, and one that was cut says so", async () => {
  expect((await loadPictures(exampleSource(examplePage())))("weight")).toEqual([[]]);
  await expect(loadPictures(exampleSource(pictured([9, 8])))).rejects.toThrow(/holds 2 bytes; .* need 6/);
});
