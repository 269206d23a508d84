import type { PageTokens } from "../contract/page";

/** A picture, four bytes for each pixel. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
}

/** A part of a grid or of a picture, from the upper left corner; stops are no part of it. */
export interface Box {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

/** Red, green and blue for each pixel as a picture. */
export function rasterOf(rgb: Uint8Array, width: number, height: number): Raster {
  const pixels = new Uint8ClampedArray(4 * width * height).fill(255);
  for (let from = 0, to = 0; from < rgb.length; from += 3, to += 4) {
    for (let channel = 0; channel < 3; channel++) pixels[to + channel] = rgb[from + channel];
  }
  return { width, height, pixels };
}

/** The place of a patch in its grid; null for other tokens. */
export function placeOf({ areas }: PageTokens, token: number): Box | null {
  const [bottom, right] = (areas?.[token] ?? "").split("/").map(Number);
  return right ? { top: bottom - 1, left: right - 1, bottom, right } : null;
}

/** The rows and columns that these tokens, all of them patches, are in. */
export function boxOf(tokens: PageTokens, first: number, stop: number): Box {
  const places = [...Array(stop - first).keys()].flatMap((number) => placeOf(tokens, first + number) ?? []);
  const least = (side: keyof Box) =>
    places.reduce((found, place) => Math.min(found, place[side]), Number.POSITIVE_INFINITY);
  const most = (side: keyof Box) => places.reduce((found, place) => Math.max(found, place[side]), 0);
  return { top: least("top"), left: least("left"), bottom: most("bottom"), right: most("right") };
}

/** The pixels of a part of a grid of so many rows and columns. */
export function pixelsOf(box: Box, [rows, columns]: readonly number[], { width, height }: Raster): Box {
  const down = (row: number) => Math.round((row * height) / rows);
  const along = (column: number) => Math.round((column * width) / columns);
  return { top: down(box.top), left: along(box.left), bottom: down(box.bottom), right: along(box.right) };
}

/** Number of the picture that a token is a patch of, from 1; 0 for other tokens. */
export function pictureOf(tokens: PageTokens, token: number): number {
  return runOf(tokens, token)?.[2] ?? 0;
}

/**
 * Where a step down (up for -1) leads: to the patch under a patch, at its edge out of the picture; among words ten tokens
 * on, and no further than the next picture.
 */
export function rowStep(tokens: PageTokens, token: number, sign: number): number {
  const [place, run] = [placeOf(tokens, token), runOf(tokens, token)];
  const on = token + 10 * sign;
  if (!run) return on;
  const area = place && `${place.bottom + sign}/${place.right}`;
  const found = tokens.areas?.findIndex((other, at) => other === area && pictureOf(tokens, at) === run[2]) ?? -1;
  if (found >= 0) return found;
  const end = sign < 0 ? run[0] - 1 : run[1];
  return place || (end - on) * sign < 0 ? end : on;
}

function runOf({ runs }: PageTokens, token: number): readonly number[] | undefined {
  return runs?.find(([first, stop]) => first <= token && token < stop);
}

/** Whether all tokens but special ones are patches: a picture without words. */
export function isPicture({ areas, special }: Pick<PageTokens, "areas" | "special">): boolean {
  return areas?.every((area, token) => area !== "" || special[token]) ?? false;
}

/** Mean and variance of the grey of a part of a picture, from 0 to 255. */
export function greyOf({ pixels, width }: Raster, { top, left, bottom, right }: Box): [mean: number, variance: number] {
  let [sum, squares] = [0, 0];
  for (let row = top; row < bottom; row++) {
    for (let at = 4 * (row * width + left); at < 4 * (row * width + right); at += 4) {
      const grey = (pixels[at] + pixels[at + 1] + pixels[at + 2]) / 3;
      sum += grey;
      squares += grey * grey;
    }
  }
  const count = Math.max(1, (bottom - top) * (right - left));
  return [sum / count, squares / count - (sum / count) ** 2];
}

/** The patch with most contrast, where a reader is likely to look; null where no token is one. */
export function contrastPatch(tokens: PageTokens, pictures: readonly Raster[]): number | null {
  let [found, most] = [null as number | null, -1];
  for (const token of tokens.labels.keys()) {
    const number = pictureOf(tokens, token) - 1;
    const [place, grid, raster] = [placeOf(tokens, token), tokens.grids?.[number], pictures[number]];
    const variance = place && grid && raster ? greyOf(raster, pixelsOf(place, grid, raster))[1] : -1;
    if (variance > most) [found, most] = [token, variance];
  }
  return found;
}
