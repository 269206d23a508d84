import type { PageTokens } from "../contract/page";
import { type Box, pictureOf, pixelsOf, placeOf, type Raster } from "../draw/patches";

interface PatchProps {
  tokens: PageTokens;
  token: number;
  pictures: readonly Raster[];
}

/** The small picture of a patch, beside its label; nothing for other tokens. */
export function Patch({ tokens, token, pictures }: PatchProps) {
  const number = pictures.length && pictureOf(tokens, token);
  const [place, grid, raster] = [placeOf(tokens, token), tokens.grids?.[number - 1], pictures[number - 1]];
  return place && grid && raster ? <Part class="patch" raster={raster} box={pixelsOf(place, grid, raster)} /> : null;
}

/** A part of a picture. */
export function Part({ class: name, raster, box }: { class: string; raster: Raster; box: Box }) {
  return <canvas class={name} ref={(canvas) => putPart(canvas, raster, box)} />;
}

function putPart(canvas: HTMLCanvasElement | null, { pixels, width }: Raster, box: Box): void {
  if (!canvas) return;
  const { top, left, bottom, right } = box;
  canvas.width = right - left;
  canvas.height = bottom - top;
  canvas.getContext("2d")?.putImageData(new ImageData(pixels, width), -left, -top);
}
