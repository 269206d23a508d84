import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageMoved, PageQuantity } from "../../../types/page";
import { parseHex, signColors, signedRamp } from "../../draw/color";
import { fillTile, heatByte, type KindName, kindColor, kindRamp } from "../../draw/kinds";
import { PICTURE_TOP, paintPatches } from "../../draw/patches";
import { type MatrixTile, paintMatrix, thumbLines, thumbsOf } from "../../draw/thumbs";
import { type LayerValues, liftByte, topLift } from "../../draw/values";
import { density, putPixels } from "../../parts/canvas";
import { ARROWS } from "../../parts/controls";
import { KindIcon } from "../../parts/legend";
import { reportDrawn } from "../../parts/mount";
import type { LoadedKinds } from "../../source/heads";
import { pooledLoader } from "../../state/byLayer";
import { headName, headWords as labelWords, movedWords } from "../../state/evidence";
import { headWords, hereOf, kindAt, kindOf, numbersOf } from "../../state/kinds";
import { WEIGHT_FACTS } from "../../state/quantity";
import { keepHead, type Selection, usualDrawing, type View } from "../../state/selection";
import { addToTray, headLine, type Store } from "../../state/store";
import type { PatchRows } from "../../state/store/heads";
import type { Cell, Places } from "./place";

/** Side of a tile from which on it has room for the icon of its kind. */
const ICON = 34;
/** Kinds whose tiles have an icon: those that a matrix of few pixels may not show. */
const WITH_ICON: readonly KindName[] = ["next", "previous", "same", "own", "near"];

export interface TilesProps {
  store: Store;
  places: ReadonlySignal<Places>;
  /** What is drawn of each head. */
  thumbs?: ReadonlySignal<GridThumbs | null>;
  /** The one colour of each head in place of a picture, and what is said of it. */
  colors?: ReadonlySignal<(at: number) => number>;
  words?: (at: number) => string;
  /** The view that a click on a head leads to; none for the one that is shown. */
  opens?: View;
  /** How far each head moved, where that is what the tiles show. */
  moved?: PageMoved | undefined;
}

/** All heads as matrices on one scale: hue is the kind, lightness the weight. */
export function Tiles({ store, places, thumbs, colors, words, opens, moved }: TilesProps) {
  const root = useRef<HTMLDivElement>(null);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const painted =
      canvas &&
      paintTiles(canvas, store, places.value, thumbs?.value ?? null, colors?.value ?? heatOf(store, places.value));
    if (painted && opens && store.shown.value) reportDrawn(canvas, store, store.shown.value);
  });
  const { cells, width, height } = places.value;
  const { layers, heads } = store.stack.value;
  return (
    <div
      class="tiles rigid relative"
      ref={root}
      role="group"
      aria-label="All heads"
      data-order={store.ranked.value ? "ranked" : store.selection.value.order}
      style={{ width: `${width}px`, height: `${height}px`, "--tile": `${places.value.size}px` }}
      onPointerLeave={() => (store.peeked.value = null)}
      onKeyDown={(event) => walk(event, store, places.value)}
    >
      <Drawn store={store} places={places.value} />
      {places.value.heat && !colors ? (
        <HeatCells store={store} places={places.value} opens={opens} />
      ) : (
        cells
          // The record may hold some heads of a layer alone.
          .filter(({ at }) => words || (layers[Math.floor(at / heads)].held?.includes(at % heads) ?? true))
          .map((cell) => (
            <Tile
              key={cell.at}
              store={store}
              cell={cell}
              size={places.value.size}
              opens={opens}
              moved={moved}
              words={words?.(cell.at)}
            />
          ))
      )}
      <Frame store={store} places={places.value} />
    </div>
  );
}

type HeatCellsProps = { store: Store; places: Places; opens: View | undefined };

/** One surface over all heads, where each of them is one colour. */
function HeatCells({ store, places: { cells, pitch }, opens }: HeatCellsProps) {
  const at = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const isUnder = (point: number, from: number) => point >= from && point < from + pitch;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return cells.find((cell) => isUnder(x, cell.x) && isUnder(y, cell.y))?.at ?? null;
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tiles around it listen to keys
    <div
      class="heat-cells"
      role="group"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows go from head to head here
      tabIndex={0}
      data-heat
      aria-label="All heads: rows are layers, columns are heads; arrows choose one"
      onPointerMove={(event) => (store.peeked.value = at(event))}
      onClick={(event) => {
        const head = at(event);
        if (head !== null) chooseTile(store, head, opens, event.shiftKey);
      }}
    />
  );
}

/** Shows a head, or adds it to those that are compared. */
function chooseTile(store: Store, at: number, opens: View | undefined, add: boolean): void {
  if (add) addToTray(store, headLine(store, at));
  else store.select((now) => ({ ...keepHead(now, at, store.stack.value), ...(opens && { view: opens }) }));
}

/** The pictures, under numbers of layers and heads; how many are of a kind; heads that share keys and values. */
function Drawn({ store, places }: { store: Store; places: Places }) {
  return (
    <div aria-hidden="true">
      <canvas data-canvas="tiles" style={{ width: `${places.width}px`, height: `${places.height}px` }} />
      {places.rows.map(({ y, text, kind }) => (
        <span
          key={`${y}`}
          class="row-label muted"
          style={{
            top: `${y}px`,
            width: `${places.label - 5}px`,
            color: kind ? kindColor(kind, store.dark.value) : undefined,
          }}
        >
          {text}
        </span>
      ))}
      {places.absent?.map(({ y, why }) => (
        <span
          key={`no ${y}`}
          class="no-attention stack"
          title={why}
          style={{ left: `${places.label}px`, top: `${y}px`, height: `${places.size}px` }}
        >
          {places.size >= 16 && <span>{why}</span>}
        </span>
      ))}
      {sharedKeys(store, places).map(({ x, y, width }) => (
        <span
          key={`kv ${x} ${y}`}
          class="kv-frame"
          style={{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${places.size}px` }}
        />
      ))}
      {places.columns.map(({ x, text }) => (
        <span key={`${x}`} class="column-label muted" style={{ left: `${x}px` }}>
          {text}
        </span>
      ))}
    </div>
  );
}

/** Where the heads of a layer that share a key/value head stand, if they stand by layer and are larger than a dot. */
function sharedKeys({ stack }: Store, { cells, columns, pitch, size, heat }: Places) {
  const { layers, heads } = stack.value;
  if (columns.length === 0 || heat) return [];
  return layers.flatMap(({ kv_heads: kvHeads }, row) => {
    const count = heads / kvHeads;
    const firsts = count > 1 ? Array.from({ length: kvHeads }, (_, kv) => cells[row * heads + kv * count]) : [];
    return firsts.map(({ x, y }) => ({ x, y, width: (count - 1) * pitch + size }));
  });
}

interface TileProps {
  store: Store;
  cell: Cell;
  size: number;
  opens: View | undefined;
  moved: PageMoved | undefined;
  words: string | undefined;
}

function Tile({ store, cell, size, opens, moved, words }: TileProps) {
  const { at } = cell;
  const name = headName({ stack: store.stack.value }, at);
  const kinds = store.kinds.value;
  const kind = kinds && kindOf(kinds, at);
  const wanted = store.selection.value.kind;
  const [said, icon] = kinds && kind ? tileWords(kinds, at, kind) : ["", null];
  const inTray = store.selection.value.tray.includes(headLine(store, at));
  const [row, column] = [Math.floor(at / store.stack.value.heads), at % store.stack.value.heads];
  const label = words === undefined ? tileLabel(store, at, said) : `Head ${name}: ${words}`;
  return (
    <button
      class="tile"
      data-tile={name}
      data-kind={kind ?? undefined}
      data-dim={(wanted !== null && wanted !== kind) || undefined}
      aria-label={label}
      title={opens ? undefined : label}
      data-within={moved?.within[row][column] || undefined}
      data-changed={moved?.changed[row][column] || undefined}
      aria-current={store.full.value === at}
      tabIndex={store.full.value === at ? 0 : -1}
      style={{
        left: `${cell.x}px`,
        top: `${cell.y}px`,
        "--kind": kind ? kindColor(kind, store.dark.value) : undefined,
      }}
      onPointerEnter={(event) => {
        if (event.pointerType !== "touch") store.peeked.value = at;
      }}
      onClick={(event) => chooseTile(store, at, opens, event.shiftKey)}
      data-compared={inTray || undefined}
      onDblClick={(event) => opens && !event.shiftKey && chooseTile(store, at, usualDrawing(store.stack.value), false)}
    >
      {icon && size >= ICON && (
        <span class="tile-icon" style={{ "--kind": kindColor(icon, store.dark.value) }}>
          <KindIcon kind={icon} />
        </span>
      )}
    </button>
  );
}

/** What is said of a head where it is not seen: what it does, how far it moved, its labels. */
function tileLabel({ stack, evidence, ranked }: Store, at: number, said: string): string {
  const { heads, moved, layers } = stack.value;
  const { kv_heads: kvHeads } = layers[Math.floor(at / heads)];
  const shared = kvHeads < heads ? `, key/value head ${Math.floor(((at % heads) * kvHeads) / heads)}` : "";
  const told = moved ? movedWords(moved, Math.floor(at / heads), at % heads) : "";
  const labels = evidence.value ? labelWords(evidence.value, at) : "";
  const place = ranked.value ? `${ranked.value.label}: ${ranked.value.text(at)}` : "";
  return [`Head ${headName({ stack: stack.value }, at)}${shared}${told ? `: ${told}` : said}`, labels, place]
    .filter(Boolean)
    .join("; ");
}

/** What a tile says, and its icon: with evidence what the head does here, where that is something else. */
function tileWords(kinds: LoadedKinds, at: number, kind: KindName): [string, KindName | null] {
  const { does, more } = headWords(kinds, at);
  const here = hereOf(kinds, at);
  if (kinds.over) return [`: ${does} over many texts; here ${more}`, here === kind ? null : here];
  return [`: ${does} on this text, ${more}`, WITH_ICON.includes(kind) ? kind : null];
}

/** Around the head that is shown in full. */
function Frame({ store, places }: { store: Store; places: Places }) {
  const cell = places.cells.find(({ at }) => at === store.full.value);
  if (!cell) return null;
  return <span class="tile-frame" aria-hidden="true" style={{ left: `${cell.x}px`, top: `${cell.y}px` }} />;
}

/** The colour of each head where tiles are too small for a matrix. */
function heatOf({ kinds, dark }: Store, { heat }: Places): ((at: number) => number) | undefined {
  const known = kinds.value;
  if (!heat || !known) return undefined;
  return (at) => {
    const kind = kindAt(known, at);
    return kindRamp(kind, dark.value)[heatByte(kind, numbersOf(known, at)("score") || 0)];
  };
}

/** Draws all tiles that are known; false where there is nothing to draw yet. */
function paintTiles(
  canvas: HTMLCanvasElement,
  store: Store,
  places: Places,
  of: GridThumbs | null,
  colors?: (at: number) => number,
): boolean {
  // What is one map for all heads together has no tile for each.
  const own = of?.quantity.per === "head" ? of : weightThumbs(store, of?.style ?? "matrices");
  if (!own && !colors) return false;
  const scale = density();
  const size = { width: Math.round(places.width * scale), height: Math.round(places.height * scale) };
  const picture = { pixels: new Uint32Array(size.width * size.height), width: size.width };
  const side = Math.max(1, Math.min(Math.round(places.size * scale), size.width));
  const [kinds, dark] = [store.kinds.value, store.dark.value];
  for (const { at, x, y } of places.cells) {
    const [left, top] = [Math.round(x * scale), Math.round(y * scale)];
    if (left + side > size.width || top + side > size.height) continue;
    const tile = { head: at, left, top, size: side };
    if (colors) fillTile(picture, tile, colors(at));
    else if (own && at < own.values.heads) paintTile(picture, tile, own, { kind: kindAt(kinds, at), dark });
  }
  putPixels(canvas, new Uint8ClampedArray(picture.pixels.buffer), size);
  return true;
}

type Pixels = Parameters<typeof paintMatrix>[0];

/** One tile in the colour of a kind: a matrix, or lines. */
export function paintTile(
  picture: Pixels,
  tile: MatrixTile,
  own: GridThumbs,
  { kind, dark }: { kind: KindName; dark: boolean },
): void {
  const { signed } = own.quantity;
  const { patch } = own;
  if (patch?.lifts[tile.head]) {
    const top = Math.min(PICTURE_TOP, topLift(own.values.keys));
    const colors = Uint32Array.from(patch.lifts[tile.head], (lift) => kindRamp(kind, dark)[liftByte(lift, top)]);
    paintPatches(picture, tile, patch, { colors, ink: dark ? 255 : 0 });
  } else if (own.style === "lines") {
    paintLines(picture, tile, own.values, signed ? signColors(dark) : [kindColor(kind, dark)]);
  } else paintMatrix(picture, tile, own.values, signed ? signedRamp(dark) : kindRamp(kind, dark));
}

/** One head as lines, in the same place as its matrix. */
function paintLines({ pixels, width }: Pixels, tile: MatrixTile, thumbs: LayerValues, colors: readonly string[]): void {
  const { head, left, top, size } = tile;
  const lines = new Uint32Array(thumbLines(thumbs, head, { width: size, height: size }, colors.map(parseHex)).buffer);
  for (let y = 0; y < size; y++) pixels.set(lines.subarray(y * size, (y + 1) * size), (top + y) * width + left);
}

/** Arrows walk from tile to tile and show each; Enter opens the head. */
function walk(event: KeyboardEvent & { currentTarget: HTMLElement }, store: Store, { cells }: Places): void {
  const from = cells.find(({ at }) => at === store.full.value);
  const step = ARROWS[event.key];
  if (event.key === "Enter" && from) {
    event.preventDefault();
    (event.target as HTMLElement).dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
    return;
  }
  if (!step || !from) return;
  event.preventDefault();
  const row = from.row + step[0];
  const inRow = cells.filter((cell) => cell.row === row);
  const column = from.column + step[1];
  const next = inRow.find((cell) => cell.column === column) ?? (step[0] !== 0 ? inRow[inRow.length - 1] : undefined);
  if (!next) return;
  const root = event.currentTarget;
  const name = headName({ stack: store.stack.value }, next.at);
  store.select((now) => keepHead(now, next.at, store.stack.value));
  queueMicrotask(() => root.querySelector<HTMLElement>(`[data-tile="${name}"]`)?.focus());
}

type ThumbStyle = Selection["tiles"];

/** Side in CSS pixels from which on lines can be followed in a thumbnail. */
export const LEAST_LINES = 80;

/** Thumbnails, and how they are drawn. */
export interface GridThumbs {
  readonly values: LayerValues;
  readonly quantity: PageQuantity;
  readonly style: ThumbStyle;
  /** Of a picture, what its chosen patch looks at: drawn in place of matrices. */
  readonly patch?: PatchRows | null;
}

/** The thumbnails of the weights, which every page has. */
export function weightThumbs({ thumbs, patchRows }: Store, style: ThumbStyle = "matrices"): GridThumbs | null {
  return thumbs.value && { values: thumbs.value, quantity: WEIGHT_FACTS, style, patch: patchRows.value };
}

/** The thumbnails of the chosen quantity; null until they are made. */
export function useQuantityThumbs(store: Store, style: { readonly value: ThumbStyle }) {
  const made = useSignal<{ values: LayerValues; name: string } | null>(null);
  const load = useRef(
    pooledLoader(store.load, ({ made: matrices, shape }) => {
      const { name, signed } = store.quantity.peek();
      made.value = { values: thumbsOf(matrices, shape, signed), name };
    }),
  );
  useSignalEffect(() => {
    const [quantity, stack] = [store.quantity.value, store.stack.value];
    load.current(stack, quantity.name === "weight" ? null : quantity).catch(store.fail);
  });
  return useComputed((): GridThumbs | null => {
    const quantity = store.quantity.value;
    if (quantity.name === "weight") return weightThumbs(store, style.value);
    const now = made.value;
    return now?.name === quantity.name ? { values: now.values, quantity, style: style.value } : null;
  });
}
