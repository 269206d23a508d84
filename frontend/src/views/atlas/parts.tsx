import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { kindColor, kindRamp } from "../../draw/kinds";
import { walkTiles } from "../../parts/controls";
import { KindIcon, LabelIcon } from "../../parts/legend";
import type { AtlasIndex, AtlasSource, AtlasTile, TreePlot } from "../../source/atlas";
import { fromBase64 } from "../../source/source";
import * as atlas from "../../state/atlas";

/** What all parts of the page are given. */
export interface AtlasView {
  readonly index: AtlasIndex;
  readonly source: AtlasSource;
  readonly dark: boolean;
  /** Mean maps of all heads, a byte for the root of each weight. */
  readonly maps: Uint8Array;
  /** Which of two atlases it is. */
  readonly side: atlas.Side;
}

/** What the parts are given of an atlas. */
export function viewOf(index: AtlasIndex, source: AtlasSource, dark: boolean, side: atlas.Side): AtlasView {
  return { index, source, dark, maps: fromBase64(index.maps), side };
}

/** The place of a head among all. */
export function placeOf({ heads }: AtlasIndex, layer: number, head: number): number {
  return heads.findIndex((tile) => tile.layer === layer && tile.head === head);
}

interface CardProps {
  title: ComponentChildren;
  /** What it is called. */
  label: string;
  class?: string;
  color?: string;
  children?: ComponentChildren;
}

/** A part of a page. */
export function Card({ title, label, class: more = "", color, children }: CardProps) {
  return (
    <section class={`card atlas-card ${more}`} aria-label={label} style={{ "--color": color }}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** What stands in a table; a number may be a bar, too. */
type Cell = ComponentChildren | { readonly text: string; readonly part: number | undefined; readonly color?: string };

interface TableProps {
  class?: string;
  caption?: ComponentChildren;
  head?: readonly ComponentChildren[];
  /** What each row begins with, and what belongs to that. */
  rows: readonly (readonly [name: ComponentChildren, ...cells: Cell[]])[];
  /** What is said of a row as a whole. */
  marks?: (row: number) => { readonly title?: string; readonly "data-clear"?: true | undefined };
}

/** Numbers in rows, each with its name. */
export function Table({ class: name, caption, head, rows, marks }: TableProps) {
  return (
    <table class={name}>
      {caption && <caption>{caption}</caption>}
      {head && (
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th key={at} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>
        {rows.map(([title, ...cells], row) => (
          <tr key={row} {...marks?.(row)}>
            <th scope="row">{title}</th>
            {cells.map((cell, at) =>
              isBar(cell) ? (
                <td key={at} data-part style={{ "--part": cell.part, "--color": cell.color }}>
                  {cell.text}
                </td>
              ) : (
                <td key={at}>{cell}</td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function isBar(cell: Cell): cell is Extract<Cell, { part: number | undefined }> {
  return typeof cell === "object" && cell !== null && "part" in cell;
}

interface LabelChipProps {
  name: string;
  dark: boolean;
  note: ComponentChildren;
  href?: string;
  title?: string;
  current?: boolean;
}

/** A label with the icon of its kind; a link where it leads somewhere. */
export function LabelChip({ name, dark, note, href, title, current }: LabelChipProps) {
  const Tag = (href ? "a" : "span") as "a";
  return (
    <Tag class="label-chip row" {...(href && { href })} title={title} aria-current={current ? "true" : undefined}>
      <LabelIcon name={name} dark={dark} />
      <bdi class="cut">{name}</bdi> <small>{note}</small>
    </Tag>
  );
}

interface HeadingProps {
  title: string;
  /** Labels, and what else is said. */
  children: ComponentChildren;
  failure: string;
  noun: string;
  home: readonly [address: string, words: string];
  /** Where Escape leads, and [ and ]. */
  out: string;
  before: string | undefined;
  after: string | undefined;
}

/** The head of the page of a head or of a pair: it leads out, and to what is beside, by keys too. */
export function Heading({ title, children, failure, noun, home, out, before, after }: HeadingProps) {
  useEffect(() => {
    const leads: Readonly<Record<string, string | undefined>> = { "[": before, "]": after, Escape: out };
    const onKey = ({ key }: KeyboardEvent) => {
      const address = leads[key];
      if (address) location.hash = address;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [out, before, after]);
  const beside = Object.entries({ before, after }).filter(([, address]) => address);
  return (
    <>
      <header class="atlas-head">
        <nav class="flex" aria-label={`${noun}s`}>
          <a class="quiet muted" href={home[0]}>
            ← {home[1]}
          </a>
          {beside.map(([where, address]) => (
            <a key={where} class="quiet muted" href={address ?? ""} aria-label={`${noun} ${where}`}>
              {where === "before" ? "‹" : "›"}
            </a>
          ))}
        </nav>
        <h1 tabIndex={-1}>{title}</h1>
        {children}
      </header>
      {failure && (
        <p class="caution" role="alert">
          {failure}
        </p>
      )}
    </>
  );
}

/** Where the heading of a head leads: to the map and to the heads before and after, which may show a text too. */
export function besideHead(
  { side, head, text: shown }: atlas.AtlasPlace,
  heads: readonly (readonly [layer: number, head: number] | undefined)[],
  text?: number,
) {
  const home = atlas.mapAddress(side);
  const [before, after] = heads.map((at) => at && atlas.headAddress(...at, text, side));
  const out = shown === null || !head ? home : atlas.headAddress(...head, undefined, side);
  return { noun: "Head", home: [home, "All heads"], out, before, after } as const;
}

/** What a head is called, and its labels, in words. */
function tileWords({ layer, head, labels }: AtlasTile): string {
  const told = labels.map(
    ({ name, score, holds }) => `${name} ${atlas.shortShare(score)}${holds ? "" : " (candidate)"}`,
  );
  return `Head ${layer}-${head}: ${told.join(", ") || "no label"}`;
}

interface TileProps {
  view: AtlasView;
  at: number;
  note?: string;
  tabbed?: boolean;
  named?: boolean;
  /** Number of a text that is to be shown. */
  text?: number;
}

/** The mean map of one head: a link to its page. */
export function Tile({ view, at, note, tabbed = true, named = false, text }: TileProps) {
  const tile = view.index.heads[at];
  const kind = atlas.kindOfTile(tile);
  return (
    <a
      class="atlas-tile block relative slim"
      href={atlas.headAddress(tile.layer, tile.head, text, view.side)}
      // A tile that shows its name is called by what it shows, so that who says it by voice is understood.
      aria-label={named ? undefined : `${tileWords(tile)}${note ? `; ${note}` : ""}`}
      title={`${tileWords(tile)}${note ? `\n${note}` : ""}`}
      data-tile={`${tile.layer}-${tile.head}`}
      tabIndex={tabbed ? 0 : -1}
    >
      <MeanMap view={view} at={at} />
      {kind !== "none" && (
        <span class="tile-icon" style={{ "--kind": kindColor(kind, view.dark) }}>
          <KindIcon kind={kind} />
        </span>
      )}
      {named && (
        <span class="atlas-name block">
          {tile.layer}-{tile.head}
        </span>
      )}
      {note && <span class="atlas-note block muted">{note}</span>}
    </a>
  );
}

interface MeanMapProps {
  view: AtlasView;
  at: number;
  /** What it is called where it is no part of a link that says so. */
  label?: string;
}

/** The mean map of one head, in the colour of its kind. */
export function MeanMap({ view, at, label }: MeanMapProps) {
  const width = 2 * view.index.side;
  const pixels = () => {
    const ramp = kindRamp(atlas.kindOfTile(view.index.heads[at]), view.dark);
    return Uint32Array.from(view.maps.subarray(at * width * width, (at + 1) * width * width), (byte) => ramp[byte]);
  };
  return <SquareMap width={width} pixels={pixels} of={[view, at]} label={label} />;
}

interface SquareMapProps {
  width: number;
  pixels: () => Uint32Array<ArrayBuffer>;
  /** What the pixels follow from. */
  of: readonly unknown[];
  label?: string | undefined;
}

/** A canvas for each map: as parts of one picture, a thousand tiles took half a minute to draw. */
export function SquareMap({ width, pixels, of, label }: SquareMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const image = new ImageData(new Uint8ClampedArray(pixels().buffer), width);
    canvas.current?.getContext("2d")?.putImageData(image, 0, 0);
  }, of);
  return (
    <canvas
      class="atlas-map block"
      ref={canvas}
      width={width}
      height={width}
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label === undefined}
    />
  );
}

interface HeadGridProps {
  grid: atlas.GridRows;
  columns?: number;
  /** A head by its place among all; one of them is reached by Tab. */
  tile: (at: number, tabbed: boolean) => ComponentChildren;
}

/** Tiles of all heads, a row for each layer; arrow keys go from one to the next. */
export function HeadGrid({ grid, columns = Math.max(...grid.rows.map((row) => row.length)), tile }: HeadGridProps) {
  return (
    <div
      class="atlas-grid stack"
      role="group"
      aria-label="Heads by layer"
      data-small={columns > 16 || undefined}
      style={{ "--columns": columns }}
      onKeyDown={(event) => walkTiles(event, columns)}
    >
      <div class="atlas-row atlas-columns-named stack muted" aria-hidden="true">
        <span />
        {Array.from({ length: columns }, (_, head) => (
          <span key={head}>{columns > 16 && head % 4 ? "" : head}</span>
        ))}
      </div>
      {grid.rows.map((row, at) => (
        <div class="atlas-row stack" key={grid.layers[at]}>
          <span class="atlas-layer muted" aria-hidden="true">
            {grid.layers[at]}
          </span>
          {row.map((head) => tile(head, head === grid.rows[0][0]))}
        </div>
      ))}
    </div>
  );
}

/** What comes later, and why it did not. */
export function useLoaded<Value>(load: () => Promise<Value>, of: readonly unknown[]): [Value | null, string] {
  const [value, setValue] = useState<Value | null>(null);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    load().then(setValue, (error: Error) => setFailure(error.message));
  }, of);
  return [value, failure];
}

const WIDE = 320;
const HIGH = 96;

interface BarsProps {
  /** What it is called, with what says most. */
  label: string;
  values: readonly number[];
  /** What stands as a line over the bars, in steps. */
  line?: readonly number[];
  /** A bar in words. */
  said: (bar: number) => string;
  /** What stands below, at the left of a bar or in between. */
  ticks: readonly (readonly [bar: number, text: string])[];
  /** Bars of another colour. */
  odd?: ((bar: number) => boolean) | undefined;
  children: ComponentChildren;
}

/** Bars of one width. */
export function Bars({ label, values, line = [], said, ticks, odd, children }: BarsProps) {
  const most = Math.max(...values, ...line, Number.MIN_VALUE);
  const width = WIDE / values.length;
  const y = (value: number) => HIGH - (HIGH * value) / most;
  return (
    <figure class="bars">
      <svg viewBox={`0 -2 ${WIDE} ${HIGH + 18}`} role="img" aria-label={label}>
        {values.map((value, bar) => (
          <rect
            key={bar}
            x={bar * width}
            y={y(value)}
            width={width * 0.86}
            height={HIGH - y(value)}
            data-odd={odd?.(bar) || undefined}
          >
            <title>{said(bar)}</title>
          </rect>
        ))}
        <polyline
          points={line.map((value, bar) => `${bar * width},${y(value)} ${(bar + 1) * width},${y(value)}`).join(" ")}
        />
        <path d={`M0 ${HIGH + 0.5}H${WIDE}`} />
        {ticks.map(([bar, text]) => (
          <text
            key={bar}
            x={bar * width}
            y={HIGH + 13}
            text-anchor={bar === 0 ? "start" : bar === values.length ? "end" : "middle"}
          >
            {text}
          </text>
        ))}
      </svg>
      <figcaption>{children}</figcaption>
    </figure>
  );
}

/** A histogram. */
export function Histogram({ plot, odd }: { plot: TreePlot; odd?: (bin: number) => boolean }) {
  const { label, description, edges, values } = plot;
  const said = (bin: number) =>
    `${atlas.digits(edges[bin])} to ${atlas.digits(edges[bin + 1])}: ${atlas.digits(values[bin])}`;
  const top = values.indexOf(Math.max(...values));
  return (
    <Bars
      label={top < 0 ? label : `${label}; most from ${said(top)}`}
      values={values}
      said={said}
      ticks={ticksOf(values.length).map((bin) => [bin, atlas.digits(edges[bin])])}
      odd={odd}
    >
      <b>{label}</b>
      {description && ` – ${description}`}
    </Bars>
  );
}

/** The edges that are named: all of a few bins, five or six of many. */
function ticksOf(bins: number): number[] {
  if (bins <= 8) return Array.from({ length: bins + 1 }, (_, bin) => bin);
  const parts = bins % 5 === 0 ? 5 : 4;
  return Array.from({ length: parts + 1 }, (_, part) => Math.round((part * bins) / parts));
}
