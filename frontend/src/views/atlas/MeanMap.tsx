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
    bytes.forEach((byte, cell) => {
      image.data.set(ramp[byte], 4 * cell);
      image.data[4 * cell + 3] = 255;
    });
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
const ramps = new Map<string, ReturnType<typeof tileRamp>>();

function rampOf(color: string, dark: boolean): ReturnType<typeof tileRamp> {
  const key = `${color} ${dark}`;
  const ramp = ramps.get(key) ?? tileRamp(color, dark);
  ramps.set(key, ramp);
  return ramp;
}
