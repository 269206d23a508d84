import { marksOf } from "../../draw/marks";
import type { AtlasIndex } from "../../source/atlas";
import { tileRamp } from "../../state/atlas";

/** The mean maps of all heads in one picture, each in the colour of its label. */
export interface Sprite {
  readonly url: string;
  readonly columns: number;
  readonly rows: number;
}

const NO_LABEL = { light: "#6b7686", dark: "#8f9aab" };

const RESTING = new Set(["first-token", "sink", "sink-elsewhere", "delimiter"]);

/** The colour of a head: that of its first label. */
export function headColors(index: AtlasIndex, dark: boolean): string[] {
  const marks = marksOf(
    index.patterns.map(({ name }) => name),
    dark,
  );
  return index.heads.map(({ labels }) => {
    const held = labels.filter(({ holds }) => holds);
    // Most heads rest somewhere; what a head does besides tells it from others.
    const label = held.find(({ name }) => !RESTING.has(name)) ?? held[0];
    const at = index.patterns.findIndex(({ name }) => name === label?.name);
    return at < 0 ? NO_LABEL[dark ? "dark" : "light"] : marks[at].color;
  });
}

export function spriteOf(index: AtlasIndex, maps: Uint8Array, dark: boolean): Sprite {
  const width = 2 * index.side;
  const columns = Math.ceil(Math.sqrt(index.heads.length));
  const rows = Math.ceil(index.heads.length / columns);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns * width, rows * width];
  const context = canvas.getContext("2d");
  const image = new ImageData(canvas.width, canvas.height);
  const ramps = new Map<string, ReturnType<typeof tileRamp>>();
  headColors(index, dark).forEach((color, head) => {
    const ramp = ramps.get(color) ?? tileRamp(color, dark);
    ramps.set(color, ramp);
    const [left, top] = [(head % columns) * width, Math.floor(head / columns) * width];
    for (let cell = 0; cell < width * width; cell++) {
      const at = 4 * ((top + Math.floor(cell / width)) * canvas.width + left + (cell % width));
      image.data.set(ramp[maps[head * width * width + cell]], at);
      image.data[at + 3] = 255;
    }
  });
  context?.putImageData(image, 0, 0);
  return { url: canvas.toDataURL(), columns, rows };
}

/** The part of the picture that shows one head, as a background. */
export function spriteStyle({ url, columns, rows }: Sprite, at: number): Record<string, string> {
  const part = (place: number, of: number) => (of > 1 ? (100 * place) / (of - 1) : 0);
  return {
    backgroundImage: `url(${url})`,
    backgroundSize: `${100 * columns}% ${100 * rows}%`,
    backgroundPosition: `${part(at % columns, columns)}% ${part(Math.floor(at / columns), rows)}%`,
  };
}
