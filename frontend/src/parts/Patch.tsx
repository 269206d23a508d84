import { useMemo } from "preact/hooks";
import type { PageTokens } from "../contract/page";
import { type Box, pictureOf, pixelsOf, placeOf, type Raster } from "../draw/patches";
import type { Pictures } from "../source/pictures";

/** The small picture of a patch, of each record, beside its label; nothing for other tokens. */
export function Patch({ tokens, token, pictures }: { tokens: PageTokens; token: number; pictures: Pictures }) {
  return useMemo(() => {
    const number = pictureOf(tokens, token);
    const [place, grid] = [placeOf(tokens, token), tokens.grids?.[number - 1]];
    return pictures.map((of, record) => {
      const raster = of[number - 1];
      return place && grid && raster ? (
        <Part key={record} class="patch" raster={raster} box={pixelsOf(place, grid, raster)} />
      ) : null;
    });
  }, [tokens, token, pictures]);
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
