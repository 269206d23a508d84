import type { PageStack } from "../../../types/page";
import type { KindName } from "../../draw/kinds";
import type { LoadedKinds } from "../../source/heads";
import { byNumber, headsByKind, numbersOf, shareText } from "../../state/kinds";

/** A tile of the overview, in CSS pixels from the corner of the tiles. */
export interface Cell {
  readonly at: number;
  readonly x: number;
  readonly y: number;
  /** Where it stands in rows and columns, for the arrow keys. */
  readonly row: number;
  readonly column: number;
}

export type RowLabel = { readonly y: number; readonly text: string; readonly kind?: KindName };

/** Where every tile stands. */
export interface Places {
  readonly cells: readonly Cell[];
  readonly rows: readonly RowLabel[];
  /** Labels over columns, where columns are heads. */
  readonly columns: readonly { readonly x: number; readonly text: string }[];
  readonly pitch: number;
  /** Side of a tile. */
  readonly size: number;
  readonly width: number;
  readonly height: number;
  /** Lines of layers without attention, and why they have none. */
  readonly absent?: readonly { readonly y: number; readonly why: string }[];
  /** Width of the labels on the left. */
  readonly label: number;
  /** Tiles are too small for a matrix: one colour for each. */
  readonly heat: boolean;
}

export interface Room {
  readonly width: number;
  readonly height: number;
  /** Largest side of a tile with its gap. */
  readonly most: number;
}

/** Below this distance of two tiles, a tile is one colour. */
const LEAST_MATRIX = 12;
/** Room that a row label needs from line to line, and a column label from column to column. */
const [ROW_LABEL, COLUMN_LABEL] = [15, 20];
const TOP = 16;
const BETWEEN_KINDS = 7;

/** Tiles by layer and head: the grid that fits. */
export function placeByLayer(stack: Pick<PageStack, "layers" | "head_numbers" | "absent">, room: Room): Places {
  const { head_numbers: numbers, absent = [] } = stack;
  const layers = stack.layers.map(({ layer }) => layer);
  const all = [...layers, ...absent.map(({ layer }) => layer)].sort((a, b) => a - b);
  const lineOf = (layer: number) => all.indexOf(layer);
  const label = Math.max(...all) > 9 ? 22 : 18;
  const free = Math.min((room.width - label) / numbers.length, (room.height - TOP) / all.length, room.most);
  const pitch = wholePitch(free);
  const [everyRow, everyColumn] = [everyLabel(ROW_LABEL, pitch), everyLabel(COLUMN_LABEL, pitch)];
  return {
    ...sizes(pitch),
    label,
    cells: layers.flatMap((layer, row) =>
      numbers.map((_, column) => ({
        at: row * numbers.length + column,
        row,
        column,
        x: label + column * pitch,
        y: TOP + lineOf(layer) * pitch,
      })),
    ),
    rows: all.flatMap((layer, line) =>
      line % everyRow === 0 ? [{ y: TOP + (line + 0.5) * pitch, text: String(layer) }] : [],
    ),
    absent: absent.map(({ layer, why }) => ({ y: TOP + lineOf(layer) * pitch, why: `Layer ${layer}: ${why}` })),
    columns: numbers.flatMap((number, column) =>
      column % everyColumn === 0 ? [{ x: label + (column + 0.5) * pitch, text: String(number) }] : [],
    ),
    width: Math.ceil(label + numbers.length * pitch),
    height: Math.ceil(TOP + all.length * pitch),
  };
}

/** Heads in an order: those of a kind, or all, of which each has something to tell. */
type Group = { readonly kind?: KindName; readonly heads: readonly number[]; readonly text?: (head: number) => string };

/** Heads by sharpness. */
export function bySharpness(kinds: LoadedKinds): Group {
  const all = headsByKind(kinds).flatMap(({ heads }) => heads);
  return {
    heads: byNumber(kinds, all, "sharpness"),
    text: (head) => shareText(numbersOf(kinds, head)("sharpness")),
  };
}

/** Tiles in the order of their groups, each of which begins a row of its own. */
export function placeInOrder(shown: readonly Group[], room: Room): Places {
  const label = shown.reduce((sum, { heads }) => sum + heads.length, 0) > 999 ? 34 : 28;
  const gaps = BETWEEN_KINDS * (shown.length - 1);
  const columns = bestColumns(
    shown.map(({ heads }) => heads.length),
    { ...room, width: room.width - label, height: room.height - TOP - gaps },
  );
  const rowsOf = (count: number) => Math.ceil(count / columns);
  const total = shown.reduce((sum, { heads }) => sum + rowsOf(heads.length), 0);
  const pitch = wholePitch(Math.min((room.width - label) / columns, (room.height - TOP - gaps) / total, room.most));
  const cells: Cell[] = [];
  const rows: RowLabel[] = [];
  let [first, y] = [0, TOP];
  for (const { kind, heads, text } of shown) {
    heads.forEach((at, index) => {
      const [row, column] = [Math.floor(index / columns), index % columns];
      cells.push({ at, row: first + row, column, x: label + column * pitch, y: y + row * pitch });
      if (text && column === 0 && row % everyLabel(ROW_LABEL, pitch) === 0) {
        rows.push({ y: y + (row + 0.5) * pitch, text: text(at) });
      }
    });
    if (kind) rows.push({ y: y + pitch / 2, text: String(heads.length), kind });
    first += rowsOf(heads.length);
    y += rowsOf(heads.length) * pitch + (kind ? BETWEEN_KINDS : 0);
  }
  const width = Math.ceil(label + columns * pitch);
  return { ...sizes(pitch), label, cells, rows, columns: [], width, height: Math.ceil(y) };
}

/** The most columns that give the largest tiles. */
function bestColumns(counts: readonly number[], { width, height, most }: Room): number {
  let best = { columns: 1, pitch: 0 };
  const largest = Math.max(1, ...counts);
  for (let columns = 1; columns <= largest; columns++) {
    const rows = counts.reduce((sum, count) => sum + Math.ceil(count / columns), 0);
    const pitch = Math.min(width / columns, height / rows, most);
    if (pitch >= best.pitch) best = { columns, pitch };
  }
  return best.columns;
}

/** Whole pixels, so that all tiles are alike, where they hold a matrix. */
function wholePitch(pitch: number): number {
  const least = Math.max(2, pitch);
  return least >= LEAST_MATRIX ? Math.floor(least) : least;
}

function sizes(pitch: number) {
  const gap = pitch >= 40 ? 4 : pitch >= 24 ? 3 : pitch >= 12 ? 2 : pitch >= 7 ? 1 : 0;
  return { pitch, size: Math.max(1, pitch - gap), heat: pitch < LEAST_MATRIX };
}

/** A label for every 1st, 2nd, 4th ... row, so that none stands on another. */
function everyLabel(room: number, pitch: number): number {
  let every = 1;
  while (every * pitch < room) every *= 2;
  return every;
}
