import { useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals-core";
import { useRef } from "preact/hooks";
import { hangingBars } from "../../draw/bars";
import { parseHex } from "../../draw/color";
import { density, putPixels } from "../../parts/canvas";
import type { Store } from "../../state/store";
import { amount } from "../../state/words";
import type { View } from "./viewport";

interface NormStripProps {
  store: Store;
  view: ReadonlySignal<View>;
  width: ReadonlySignal<number>;
}

const HEIGHT = 16;
const INK = { light: "#9aa1ac", dark: "#5a626d" };

/** Below each key of a matrix: the length of what it adds when it has all the weight. */
export function NormStrip({ store, view, width: room }: NormStripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useSignalEffect(() => {
    const norms = store.valueNorms.value;
    const [width, { left, cell }, scale] = [room.value, view.value, density()];
    if (!canvas.current || !norms || width <= 0) return;
    const strip = { width: Math.round(width * scale), height: Math.round(HEIGHT * scale), left, cell: cell * scale };
    const ink = parseHex(INK[store.dark.value ? "dark" : "light"]);
    putPixels(canvas.current, hangingBars(norms.values, norms.most, strip, ink), strip);
  });
  const norms = store.valueNorms.value;
  if (!norms) return null;
  return (
    <>
      <small class="norm-name" title="Norm of what a key adds at weight 1">
        value norm, up to {amount(norms.most)}
      </small>
      <div class="norm-strip" aria-hidden="true">
        <canvas ref={canvas} data-canvas="norms" />
      </div>
    </>
  );
}
