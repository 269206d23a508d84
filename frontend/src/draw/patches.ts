import type { PageTokens } from "../../types/page";

/** A picture, four bytes for each pixel. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
}

/** A part of a grid or of a picture, from the upper left corner; stops are no part of it. */
export type Box = { readonly top: number; readonly left: number; readonly bottom: number; readonly right: number };

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

/** Over a picture the full colour comes earlier, so that faint patches are seen. */
export const PICTURE_TOP = 16;
/** How dark the picture is over the heat. */
const INK = 0.6;

/** A square with the patches of a picture in their colours, the picture over them as ink, and a frame around one patch. */
export function paintPatches(
  { pixels, width }: { readonly pixels: Uint32Array; readonly width: number },
  { left, top, size }: { readonly left: number; readonly top: number; readonly size: number },
  { tokens, raster, query }: { readonly tokens: PageTokens; readonly raster: Raster; readonly query: number },
  /** The colour of each token, and the channel of ink: black, or white on black. */
  { colors, ink }: { readonly colors: Uint32Array; readonly ink: number },
): void {
  const [rows, columns] = tokens.grids?.[0] ?? [1, 1];
  const pitch = size / Math.max(rows, columns);
  const tokenAt = new Map(tokens.areas?.map((area, token) => [area, token]));
  const isBright = greyOf(raster, { top: 0, left: 0, bottom: raster.height, right: raster.width })[0] > 127;
  for (let y = 0; y < Math.round(rows * pitch); y++) {
    const row = Math.floor(y / pitch);
    for (let x = 0; x < Math.round(columns * pitch); x++) {
      const token = tokenAt.get(`${row + 1}/${Math.floor(x / pitch) + 1}`);
      const [down, along] = [
        Math.floor((y * raster.height) / (rows * pitch)),
        Math.floor((x * raster.width) / (columns * pitch)),
      ];
      const [grey] = greyOf(raster, { top: down, left: along, bottom: down + 1, right: along + 1 });
      const part = INK * (isBright ? 1 - grey / 255 : grey / 255);
      const edge = Math.min(y - row * pitch, x % pitch, (row + 1) * pitch - y - 1, pitch - (x % pitch) - 1) < 1;
      pixels[(top + y) * width + left + x] = inked(
        token === undefined ? 0 : colors[token],
        token === query && edge ? 1 : part,
        ink,
      );
    }
  }
}

/** A colour under so much ink. */
function inked(color: number, part: number, ink: number): number {
  const channel = (shift: number) => Math.round((1 - part) * ((color >> shift) & 255) + part * ink) << shift;
  return (255 << 24) | channel(16) | channel(8) | channel(0);
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
