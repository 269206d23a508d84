import { useLayoutEffect, useRef } from "preact/hooks";
import { tileRamp } from "../../state/atlas";
import type { AtlasView } from "./parts";

interface MeanMapProps {
  view: AtlasView;
  at: number;
  /** What it is called where it is no part of a link that says so. */
  label?: string;
}

/**
 * The mean map of one head, in the colour of its label.
 *
 * A canvas for each: as parts of one picture, a thousand tiles took half a minute to draw.
 */
export function MeanMap({ view, at, label }: MeanMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = 2 * view.index.side;
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    const ramp = rampOf(view.colors[at], view.dark);
    const image = new ImageData(width, width);
    const bytes = view.maps.subarray(at * width * width, (at + 1) * width * width);
    // A pixel at once: four numbers each, of two thousand tiles, took most of the first picture.
    const pixels = new Uint32Array(image.data.buffer);
    for (let cell = 0; cell < bytes.length; cell += 1) pixels[cell] = ramp[bytes[cell]];
    context?.putImageData(image, 0, 0);
  }, [view, at, width]);
  return (
    <canvas
      class="atlas-map"
      ref={canvas}
      width={width}
      height={width}
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label === undefined}
    />
  );
}

/** Heads of one label share their ramp. */
const ramps = new Map<string, Uint32Array>();

function rampOf(color: string, dark: boolean): Uint32Array {
  const key = `${color} ${dark}`;
  const ramp = ramps.get(key) ?? pixelsOf(tileRamp(color, dark));
  ramps.set(key, ramp);
  return ramp;
}

/** Opaque pixels in the byte order of this machine. */
function pixelsOf(ramp: ReturnType<typeof tileRamp>): Uint32Array {
  const bytes = new Uint8ClampedArray(4 * ramp.length).fill(255);
  ramp.forEach((color, at) => {
    bytes.set(color.slice(0, 3), 4 * at);
  });
  return new Uint32Array(bytes.buffer);
}
