import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { KIND_NAMES } from "../../../contract/values";
import { kindColor } from "../../draw/kinds";
import type { MatrixTile } from "../../draw/thumbs";
import { putPixels } from "../../parts/canvas";
import { animatedWebp, bytesOf, saveFile } from "../../parts/files";
import { headName } from "../../state/evidence";
import { clausesOf, kindAt } from "../../state/kinds";
import type { Store } from "../../state/store";
import { count } from "../../state/words";
import { paintTile, weightThumbs } from "../overview/Tiles";

/** Side of a bundle with its gap in the poster, and the gap. */
const [PITCH, GAP] = [120, 14];
/** Size of the film, its margin, the side of each of its two halves, and where the right one begins. */
const FILM = { width: 1280, height: 720, margin: 40, half: 580, right: 660 };
/** Milliseconds of each layer, and of the last one. */
const [STAYS, LAST_STAYS] = [900, 2500];

/** A head in a frame; its name where it has one. */
interface Placed extends MatrixTile {
  readonly style: "lines" | "matrices";
  readonly named?: boolean;
}

/** A picture on black, in pixels. */
interface Frame {
  readonly width: number;
  readonly height: number;
  readonly margin: number;
  readonly tiles: readonly Placed[];
}

/** All heads on black: as lines (a poster), or layer after layer (a film). Any key closes it; a button saves it. */
export function Show({ store, film }: { store: Store; film: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  const layer = useSignal(0);
  const problem = useSignal("");
  const { layers } = store.stack.value;
  const frame = useComputed(() => (film ? filmFrame(store, layer.value) : posterFrame(store)));
  useEffect(() => {
    root.current?.focus();
    if (!film) return;
    const timer = setInterval(() => (layer.value = Math.min(layer.value + 1, layers.length - 1)), STAYS);
    return () => clearInterval(timer);
  }, [film, layer, layers]);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    if (canvas) paint(canvas, store, frame.value);
  });
  const close = () => (store.show.value = null);
  const name = film ? "film" : "poster";
  return (
    <div
      class="poster stack"
      ref={root}
      role="dialog"
      aria-label={film ? "Film through the layers" : "Poster of all heads"}
      tabIndex={-1}
      data-poster
      onKeyDown={(event) => {
        event.stopPropagation();
        if (!(event.target instanceof HTMLButtonElement && "Enter ".includes(event.key))) close();
      }}
    >
      <canvas
        data-canvas={name}
        data-layer={film ? layers[layer.value].layer : undefined}
        role="img"
        aria-label={sentenceOf(store)
          .map(([text]) => text)
          .join("")}
        onClick={close}
      />
      <button
        data-poster-save
        onClick={() => save(store, film).catch((error: Error) => (problem.value = error.message))}
      >
        save as {film ? "animated WebP" : "PNG"}
      </button>
      {problem.value && <p role="alert">{problem.value}</p>}
    </div>
  );
}

/** Heads from one on beside each other in so many columns, in a grid whose corner stands at (left, top). */
function gridOf(
  [first, end]: readonly [number, number],
  [columns, pitch]: readonly [number, number],
  [left, top]: readonly [number, number],
  tile: Pick<Placed, "size" | "style" | "named">,
): Placed[] {
  return Array.from({ length: end - first }, (_, at) => ({
    head: first + at,
    left: left + (at % columns) * pitch,
    top: top + Math.floor(at / columns) * pitch,
    ...tile,
  }));
}

function posterFrame({ stack }: Store): Frame {
  const { layers, heads } = stack.value;
  const tile = { size: PITCH - GAP, style: "lines" } as const;
  const tiles = gridOf([0, heads * layers.length], [heads, PITCH], [PITCH, PITCH / 2], tile);
  return { width: (heads + 2) * PITCH, height: (layers.length + 2) * PITCH, margin: PITCH, tiles };
}

/** The layers so far as matrices at the left, and the heads of the last of them as lines at the right. */
function filmFrame({ stack }: Store, last: number): Frame {
  const { layers, heads } = stack.value;
  const { margin, half, right } = FILM;
  const pitch = Math.floor(half / Math.max(heads, layers.length));
  const columns = Math.ceil(Math.sqrt(heads));
  const cell = Math.floor(half / columns);
  // Each half in the middle of the height.
  const down = (height: number) => margin + Math.floor((half - height) / 2);
  const [first, firstOfLines] = [down(pitch * layers.length), down(cell * Math.ceil(heads / columns))];
  const [end, corner] = [heads * (last + 1), [right, firstOfLines + Math.ceil(cell / 6)] as const];
  const [matrix, lines] = [{ size: pitch - 1, style: "matrices" } as const, { style: "lines", named: true } as const];
  const tiles = [
    ...gridOf([0, end], [heads, pitch], [margin, first], matrix),
    ...gridOf([end - heads, end], [columns, cell], corner, { ...lines, size: Math.floor((cell * 3) / 4) }),
  ];
  return { ...FILM, tiles };
}

/** The model, and what its heads do, with the colour of each part. */
function sentenceOf({ page, stack, kinds }: Store): (readonly [text: string, color: string])[] {
  const plain = "#ddd";
  const name = page.model.name || page.title;
  if (!kinds.value) return [[name, plain]];
  const clauses = clausesOf(kinds.value).map(({ kind, count: of, text }, at, { length }) => {
    return [`${of} ${text}${at < length - 1 ? ", " : "."}`, kindColor(kind, true)] as const;
  });
  return [[`${name}: of ${count(stack.value.layers.length * stack.value.heads)} heads `, plain], ...clauses];
}

/** Paints a frame with the sentence at its bottom. */
function paint(canvas: HTMLCanvasElement, store: Store, { width, height, margin, tiles }: Frame): void {
  const thumbs = weightThumbs(store, "lines");
  const context = canvas.getContext("2d", { alpha: false });
  if (!thumbs || !context) return;
  const kinds = store.kinds.value;
  const picture = { pixels: new Uint32Array(width * height), width };
  for (const tile of tiles) {
    if (tile.head < thumbs.values.heads)
      paintTile(picture, tile, { ...thumbs, style: tile.style }, { kind: kindAt(kinds, tile.head), dark: true });
  }
  const layer = document.createElement("canvas");
  putPixels(layer, new Uint8ClampedArray(picture.pixels.buffer), { width, height });
  [canvas.width, canvas.height] = [width, height];
  context.drawImage(layer, 0, 0);
  const write = (text: string, x: number, y: number, color: string) => {
    context.fillStyle = color;
    context.fillText(text, x, y);
    return x + context.measureText(text).width;
  };
  const font = (size: number) => `${size}px system-ui, sans-serif`;
  for (const { head, left, top, size, named } of tiles) {
    if (!named) continue;
    context.font = font(Math.min(16, size / 9));
    const kind = kindAt(kinds, head);
    write(
      `${headName({ stack: store.stack.value }, head)} ${KIND_NAMES[kind]}`,
      left,
      top - size / 18,
      kindColor(kind, true),
    );
  }
  const sentence = sentenceOf(store);
  // As large as one line allows.
  context.font = font(100);
  const room = width - 2 * margin;
  const fits = (100 * room) / context.measureText(sentence.map(([text]) => text).join("")).width;
  context.font = font(Math.min(fits, room / 70));
  let x = margin;
  for (const [text, color] of sentence) x = write(text, x, height - margin / 2, color);
}

/** The poster as a PNG, the film as an animated WebP of its layers. */
async function save(store: Store, film: boolean): Promise<void> {
  const canvas = document.createElement("canvas");
  const name = (store.page.model.name || "heads").replace(/[^\w.-]+/g, "-");
  if (!film) {
    paint(canvas, store, posterFrame(store));
    saveFile(new Blob([await bytesOf(canvas, "image/png")], { type: "image/png" }), `${name}-poster.png`);
    return;
  }
  const frames: [Uint8Array<ArrayBuffer>, number][] = [];
  const { length } = store.stack.value.layers;
  for (let layer = 0; layer < length; layer++) {
    paint(canvas, store, filmFrame(store, layer));
    frames.push([await bytesOf(canvas, "image/webp"), layer < length - 1 ? STAYS : LAST_STAYS]);
  }
  saveFile(animatedWebp(frames, FILM), `${name}-film.webp`);
}
