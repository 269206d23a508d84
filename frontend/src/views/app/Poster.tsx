import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { parseHex } from "../../draw/color";
import { kindColor } from "../../draw/kinds";
import { thumbLines } from "../../draw/thumbs";
import { putPixels } from "../../parts/useWidth";
import { clausesOf, kindOf } from "../../state/kinds";
import type { Store } from "../../state/store";
import { count } from "../../state/words";

/** Side of a bundle with its gap in the picture that is saved, and the gap. */
const [PITCH, GAP] = [120, 14];

/** All heads as lines on black, with the sentence about them: for a screen, a talk, a wall. Any key closes it. */
export function Poster({ store }: { store: Store }) {
  const root = useRef<HTMLDivElement>(null);
  const { layers, heads } = store.stack.value;
  const size = useComputed(() => ({ width: heads * PITCH, height: layers.length * PITCH }));
  useEffect(() => root.current?.focus(), []);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [thumbs, kinds] = [store.thumbs.value, store.kinds.value];
    if (!canvas || !thumbs) return;
    const { width, height } = size.value;
    const pixels = new Uint32Array(width * height);
    for (let head = 0; head < Math.min(thumbs.heads, heads * layers.length); head++) {
      const [left, top] = [(head % heads) * PITCH, Math.floor(head / heads) * PITCH];
      const color = parseHex(kindColor((kinds && kindOf(kinds, head)) ?? "none", true));
      const lines = new Uint32Array(thumbLines(thumbs, head, PITCH - GAP, [color]).buffer);
      for (let y = 0; y < PITCH - GAP; y++)
        pixels.set(lines.subarray(y * (PITCH - GAP), (y + 1) * (PITCH - GAP)), (top + y) * width + left);
    }
    putPixels(canvas, new Uint8ClampedArray(pixels.buffer), size.value);
  });
  const close = () => {
    store.poster.value = false;
  };
  const kinds = store.kinds.value;
  return (
    <div
      class="poster"
      ref={root}
      role="dialog"
      aria-label="Poster of all heads"
      tabIndex={-1}
      data-poster
      onKeyDown={(event) => {
        event.stopPropagation();
        close();
      }}
    >
      <canvas data-canvas="poster" onClick={close} />
      <p>
        {store.page.model.name || store.page.title}
        {kinds && (
          <>
            : of {count(layers.length * heads)} heads{" "}
            {clausesOf(kinds).map(({ kind, count: of, text }, at, all) => (
              <span key={kind} style={{ color: kindColor(kind, true) }}>
                {of} {text}
                {at < all.length - 1 ? ", " : "."}
              </span>
            ))}
          </>
        )}
      </p>
      <button data-poster-save onClick={() => save(root.current, store)}>
        save as PNG
      </button>
    </div>
  );
}

/** The picture with its sentence below it, on black. */
function save(root: HTMLElement | null, { page }: Store): void {
  const canvas = root?.querySelector("canvas");
  if (!canvas) return;
  const paper = document.createElement("canvas");
  [paper.width, paper.height] = [canvas.width + 2 * PITCH, canvas.height + 2 * PITCH];
  const context = paper.getContext("2d");
  if (!context) return;
  context.fillStyle = "#000";
  context.fillRect(0, 0, paper.width, paper.height);
  context.drawImage(canvas, PITCH, PITCH / 2);
  let x = PITCH;
  const sentence = root?.querySelector("p");
  const font = (size: number) => `${size}px system-ui, sans-serif`;
  // As large as one line under the heads allows.
  context.font = font(100);
  const fits = (100 * canvas.width) / context.measureText(sentence?.textContent ?? "").width;
  context.font = font(Math.min(fits, canvas.width / 70));
  for (const part of sentence?.childNodes ?? []) {
    context.fillStyle = part instanceof HTMLElement ? part.style.color : "#ddd";
    context.fillText(part.textContent ?? "", x, paper.height - PITCH / 2);
    x += context.measureText(part.textContent ?? "").width;
  }
  const link = document.createElement("a");
  link.href = paper.toDataURL("image/png");
  link.download = `${(page.model.name || "heads").replace(/[^\w.-]+/g, "-")}-poster.png`;
  link.click();
}
