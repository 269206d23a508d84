import { ALONG, BY_LOOKING, EACH_TOKEN, LEAST } from "../../../contract/values";
import type { WhyPicture } from "../../../types/why";
import type { KindName } from "../../draw/kinds";
import { shareText } from "../../state/partNumbers";

/** Columns up to which all are drawn, and numbers on lines, narrow and wide. */
const [COLUMNS, PILLS] = [
  [16, 30],
  [5, 9],
];
/** Pixels between columns at most; a gap is this part of it. */
const [WIDEST, GAP] = [96, 0.45];
/** Pixels of a letter, and letters of a word at most where words stand side by side or are turned. */
const [LETTER, LONGEST] = [7.6, 12];

type Point = readonly [x: number, y: number];
type Curve = readonly [Point, Point, Point, Point];

export type WhyData = ReturnType<typeof readWhy>;
export type WhyLine = WhyData["lines"][number];

/** The picture with its columns, each a token, a part of a long text, or tokens of it that no line touches. */
export function readWhy(picture: WhyPicture) {
  const { tokens, part_of: partOf, links, words, sources, position } = picture;
  const touched = new Set([position, ...links.flatMap(([, , query, key]) => [query, key])]);
  const groupOf = (at: number) => {
    if (tokens.length <= EACH_TOKEN || at === position) return at;
    if (partOf[at] >= 0) return `part ${partOf[at]}`;
    return touched.has(at) ? at : "…";
  };
  const below = picture.rows.filter((name) => name.startsWith("encoder")).length;
  const columns: { label: string; tokens: number; carried: number; bottom: number }[] = [];
  const columnOf = tokens.map((token, at) => {
    const group = groupOf(at);
    if (at === 0 || group !== groupOf(at - 1) || at === sources) {
      const label = group === at ? token : (picture.parts[partOf[at]] ?? "…");
      columns.push({ label, tokens: 0, carried: 0, bottom: sources > 0 && at >= sources ? below : 0 });
    }
    const column = columns[columns.length - 1];
    column.tokens++;
    column.carried += words[at];
    return columns.length - 1;
  });
  const lines = links.map(([layer, head, query, key], at) => {
    const [carried, estimate, measured, later] = picture.shares[at];
    const isByLooking = Math.abs(later) > BY_LOOKING * Math.abs(measured) && Math.abs(measured) > Math.abs(carried);
    const [keyRow, queryRow] = picture.row_of[at];
    const [stack, number] = picture.stages[layer];
    // Positions in the texts of their stack; columns begin with what an encoder reads.
    const link = {
      head,
      query: query - (stack === "encoder" ? 0 : sources),
      key: key - (stack === "decoder" ? sources : 0),
    };
    return {
      ...{ stack, layer: number, link },
      ...{ id: `${layer} ${head} ${query} ${key}`, name: picture.names[at], kind: picture.kinds[at] as KindName },
      ...{ key: columnOf[key], query: columnOf[query], words: [tokens[key], tokens[query]], keyRow, queryRow },
      ...{ weight: picture.weights[at], carried, estimate, measured, later, isByLooking, graph: picture.graph_of[at] },
    };
  });
  const graphs = picture.sizes.map((size, at) => ({ lines: size, keeps: picture.keeps[at], drawn: picture.drawn[at] }));
  const rows = ["words", ...picture.rows];
  return { ...picture, rows, columns, lines, graphs, at: columnOf[position], biases: words[tokens.length] };
}

/** A line where it is drawn. */
export type PlacedLine = { readonly line: WhyLine; readonly width: number; readonly path: string };

/** "+24 %", "−8.6 %"; nothing where it is rounding. */
export function signedShare(part: number): string {
  return Math.abs(part) < LEAST ? "" : `${part < 0 ? "−" : "+"}${shareText(Math.abs(part))}`;
}

/** The lines of a graph. */
export function linesOf({ lines }: WhyData, stop: number): WhyLine[] {
  return lines.filter(({ graph }) => graph <= stop);
}

/** Whether what comes along a line goes on along another, higher one. */
export function leadsTo(low: WhyLine, high: WhyLine, lines: readonly WhyLine[]): boolean {
  if (low === high) return true;
  const next = lines.filter(({ key, keyRow }) => key === low.query && keyRow >= low.queryRow);
  return next.some((line) => leadsTo(line, high, lines));
}

/** What is kept, in words. */
export function keepsText({ graphs }: WhyData, stop: number): readonly [ours: string, drawn: string] {
  const { lines, keeps, drawn } = graphs[stop];
  const percent = (part: number) => (Math.abs(part) < LEAST ? "0 %" : signedShare(part).replace("+", ""));
  return [
    `${lines} ${lines === 1 ? "line keeps" : "lines keep"} ${percent(keeps)} of what attention does here`,
    `(measured: all others cut at once). ${lines} drawn by weight keep ${percent(drawn[1])}.`,
  ];
}

/** Where the columns, rows, lines and numbers of a graph stand on so many pixels. */
export function placedWhy(picture: WhyData, stop: number, width: number) {
  const { columns, rows, at } = picture;
  const lines = linesOf(picture, stop);
  const isSmall = width < 600;
  const touched = new Set([at, ...lines.flatMap(({ key, query }) => [key, query])]);
  const isAll = columns.length <= COLUMNS[isSmall ? 0 : 1];
  const shown = [...columns.keys()].filter((column) => isAll || touched.has(column));
  const [left, right] = isSmall ? [26, 30] : [118, 62];
  const gaps = shown.map((column, place) => (place > 0 && column !== shown[place - 1] + 1 ? GAP : 0));
  const units = shown.length - 1 + gaps.reduce((sum, gap) => sum + gap, 0);
  const room = width - left - right;
  const step = Math.min(WIDEST, room / Math.max(1, units));
  let x = left + (room - step * units) / 2;
  const xs = new Map<number, number>();
  const breaks: number[] = [];
  shown.forEach((column, place) => {
    if (place > 0) x += step * (1 + gaps[place]);
    if (gaps[place] > 0) breaks.push(x - step * (0.5 + GAP / 2));
    xs.set(column, x);
  });
  // The words are seen without scrolling, up to some ten layers.
  const rise = Math.min(isSmall ? 90 : 120, Math.max(28, 360 / (rows.length - 1)));
  const ys = rows.map((_, row) => 56 + (rows.length - 1 - row) * rise);
  // Words are turned where one of them has no room: "document 1" must not lose its number.
  const isTurned = shown.some((column) => step < LETTER * Math.min(LONGEST, columns[column].label.length));
  const tops = new Map([[at, rows.length - 1]]);
  for (const { key, query, keyRow, queryRow } of lines) {
    tops.set(key, Math.max(tops.get(key) ?? 0, keyRow));
    tops.set(query, Math.max(tops.get(query) ?? 0, queryRow));
  }
  const place: Place = { xs, ys, step, rise, isSmall, width };
  const placed = strands(lines, place);
  return {
    ...place,
    height: ys[0] + (isTurned ? 138 : 62),
    isTurned,
    breaks,
    /** Letters of a word that have room. */
    letters: isTurned ? LONGEST : Math.max(LONGEST, Math.floor((step + (isAll ? 0 : 20)) / LETTER) - 1),
    /** The highest row of each column that a line touches. */
    tops,
    lines: placed.map(({ line, width: wide, curve }): PlacedLine => ({ line, width: wide, path: pathOf(curve) })),
    pills: pillsOf(placed, place),
  };
}

interface Place {
  /** Of each column that is drawn. */
  readonly xs: ReadonlyMap<number, number>;
  /** Of each row. */
  readonly ys: readonly number[];
  /** Between columns, and between rows. */
  readonly step: number;
  readonly rise: number;
  readonly isSmall: boolean;
  readonly width: number;
}

type Strand = { readonly line: WhyLine; readonly width: number; readonly curve: Curve };

/** The curves of lines; those between the same places are side by side. */
function strands(lines: readonly WhyLine[], { xs, ys, step, rise, isSmall }: Place): Strand[] {
  const ends = ({ key, query, keyRow, queryRow }: WhyLine) => `${[key, query, keyRow, queryRow]}`;
  return lines.map((line) => {
    const beside = lines.filter((other) => ends(other) === ends(line));
    const wide = Math.max(line.isByLooking ? 3 : 1.2, Math.min(13, 34 * Math.abs(line.carried)) * (isSmall ? 0.6 : 1));
    // Their middles are as far apart as they are wide, as long as there is room.
    const apart = Math.min(10, (0.9 * rise) / beside.length);
    const aside = (beside.indexOf(line) - (beside.length - 1) / 2) * apart;
    const [x1, x2] = [xs.get(line.key) ?? 0, xs.get(line.query) ?? 0];
    const [y1, y2] = [ys[line.keyRow], ys[line.queryRow]];
    const curve: Curve =
      x1 === x2
        ? loop([x1, y1], [x2, y2], (beside.indexOf(line) + 1) * Math.min(0.2 * step, 12))
        : [
            [x1, y1],
            [x1, (y1 + y2) / 2 + aside],
            [x2, y1 + 0.6 * (y2 - y1) + aside],
            [x2, y2],
          ];
    return { line, width: wide, curve };
  });
}

/** From a place to one above it, aside of what stands between them. */
function loop([x, low]: Point, [, high]: Point, aside: number): Curve {
  const third = (high - low) / 3;
  return [
    [x, low],
    [x + aside * 1.33, low + third],
    [x + aside * 1.33, high - third],
    [x, high],
  ];
}

function pathOf([from, ...rest]: Curve): string {
  const written = ([x, y]: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return `M${written(from)}C${rest.map(written).join(" ")}`;
}

function pointOn(curve: Curve, part: number): Point {
  const weights = [(1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part ** 2 * (1 - part), part ** 3];
  const along = (axis: 0 | 1) => curve.reduce((sum, point, at) => sum + weights[at] * point[axis], 0);
  return [along(0), along(1)];
}

/** The numbers of the lines whose cut changes most, where none hides another. */
function pillsOf(placed: readonly Strand[], { isSmall, width }: Place) {
  const boxes: (readonly [left: number, top: number, right: number])[] = [];
  const pills: { line: WhyLine; x: number; y: number; wide: number; text: string }[] = [];
  const strongest = [...placed].sort((one, other) => Math.abs(other.line.measured) - Math.abs(one.line.measured));
  for (const { line, curve } of strongest.slice(0, PILLS[isSmall ? 0 : 1])) {
    const text = signedShare(line.measured);
    const wide = 14 + LETTER * (line.name.length + 1 + text.length);
    const isFree = ([x, y]: Point) => {
      if (!text || x - wide / 2 < 0 || x + wide / 2 > width) return false;
      return boxes.every(([left, top, right]) => x - wide / 2 > right || x + wide / 2 < left || Math.abs(y - top) > 22);
    };
    const [x, y] = ALONG.map((part) => pointOn(curve, part)).find(isFree) ?? [];
    if (x === undefined || y === undefined) continue;
    boxes.push([x - wide / 2 - 3, y, x + wide / 2 + 3]);
    pills.push({ line, x, y, wide, text });
  }
  return pills;
}
