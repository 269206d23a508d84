import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { parseHex } from "../../draw/color";
import { exposure } from "../../draw/exposure";
import { ink } from "../../draw/ink";
import { type KindName, kindColor, kindRamp } from "../../draw/kinds";
import { collectLines, everyLine } from "../../draw/lines";
import { everyToken } from "../../draw/mask";
import type { Ramp } from "../../draw/ramps";
import { paintMatrix } from "../../draw/thumbs";
import { type LayerValues, largest } from "../../draw/values";
import { toByte } from "../../draw/weights";
import { density, putPixels } from "../../parts/canvas";
import { useWidth } from "../../parts/useWidth";
import type { LoadedLayer } from "../../source/layer";
import { headName } from "../../state/evidence";
import { clearestOfEach, headWords } from "../../state/kinds";
import { keepHead } from "../../state/selection";
import type { Store } from "../../state/store";

/** With more tokens than this heads are matrices here. */
const MOST_LINES = 64;

interface PlateStripProps {
  store: Store;
  /** Whether there is room for tall pictures. */
  tall: boolean;
}

const STRIP = "The clearest head of each kind";

/** The clearest head of each kind, small; a click shows one in full. */
export function PlateStrip({ store, tall }: PlateStripProps) {
  const kinds = store.kinds.value;
  if (!kinds || kinds.left > 0) return <div class="plate-strip" />;
  const clearest = clearestOfEach(kinds);
  // Of random weights no head does any of these.
  if (clearest.length === 0) return null;
  return (
    <div class="plate-strip" data-tall={tall || undefined} aria-label={STRIP} role="group">
      {clearest.map(({ kind, head }) => (
        <button
          key={kind}
          class="plate-head"
          data-plate={kind}
          style={{ "--kind": kindColor(kind, store.dark.value) }}
          title={headWords(kinds, head).does}
          onClick={() => store.select((now) => keepHead(now, head, store.stack.value))}
        >
          <span>
            <strong>{headName({ stack: store.stack.value }, head)}</strong> <em>{kind === "near" ? "nearby" : kind}</em>
          </span>
          <Lines store={store} head={head} kind={kind} />
        </button>
      ))}
    </div>
  );
}

/** One head, drawn once its layer is there and whenever size or colours change: as lines, or as a matrix. */
function Lines({ store, head, kind }: { store: Store; head: number; kind: KindName }) {
  const root = useRef<HTMLSpanElement>(null);
  const width = useWidth(root);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const color = kindColor(kind, store.dark.value);
    if (!canvas || width.value === 0) return;
    const stack = store.stack.value;
    const thumbs = store.thumbs.value;
    const queries = stack.query.labels.length;
    // So many lines would be one grey surface.
    if (queries > MOST_LINES) {
      if (thumbs) paintSquare(canvas, thumbs, head, kindRamp(kind, store.dark.value));
      return;
    }
    const layer = stack.layers[(head / stack.heads) | 0];
    const column = head % stack.heads;
    store.loadHead(layer, column).then((loaded) => paintLines(canvas, store, loaded, column, color), store.fail);
  });
  return (
    <span class="plate-lines" ref={root} aria-hidden="true">
      <canvas data-canvas="plate" data-square={store.stack.value.query.labels.length > MOST_LINES || undefined} />
    </span>
  );
}

function paintSquare(canvas: HTMLCanvasElement, thumbs: LayerValues, head: number, ramp: Ramp): void {
  const side = Math.round(Math.min(canvas.clientWidth, canvas.clientHeight) * density());
  if (side === 0 || head >= thumbs.heads) return;
  const picture = { pixels: new Uint32Array(side * side), width: side };
  paintMatrix(picture, { head, left: 0, top: 0, size: side }, thumbs, ramp);
  putPixels(canvas, new Uint8ClampedArray(picture.pixels.buffer), { width: side, height: side });
}

function paintLines(
  canvas: HTMLCanvasElement,
  store: Store,
  { weights, even }: LoadedLayer,
  head: number,
  color: string,
) {
  const scale = density();
  const [width, height] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
  if (width === 0 || height === 0 || head >= weights.heads) return;
  const mask = everyToken(store.stack.peek());
  const lineWidth = (canvas.clientWidth < 90 ? 1 : 1.6) * scale;
  const { queries, keys } = weights;
  const gain = exposure({ mass: queries, lineWidth, height, aim: 0.62, most: 2.4 });
  const lines = collectLines(weights, [head], {
    height,
    query: { tokens: queries, pitch: height / queries, top: 0 },
    key: { tokens: keys, pitch: height / keys, top: 0 },
    mask,
    cutoffs: [everyLine(mask).map((_, query) => toByte(largest(even.row(0, query))) + 1)],
    spread: 0,
    reach: lineWidth,
    gain,
    gamma: 1,
  });
  putPixels(canvas, ink(lines, [parseHex(color)], { width, height, lineWidth }), { width, height });
}
