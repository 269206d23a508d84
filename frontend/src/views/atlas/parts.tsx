import { marksOf, type Mark as Shape } from "../../draw/marks";
import { Mark } from "../../parts/Mark";
import type { AtlasIndex, AtlasSource, AtlasTile } from "../../source/atlas";
import { fromBase64 } from "../../source/bytes";
import { headAddress, type Side, shortShare } from "../../state/atlas";
import { headColors } from "./colors";
import { MeanMap } from "./MeanMap";

/** What all parts of the page are given. */
export interface AtlasView {
  readonly index: AtlasIndex;
  readonly source: AtlasSource;
  readonly dark: boolean;
  /** Mean maps of all heads, a byte for the root of each weight. */
  readonly maps: Uint8Array;
  readonly marks: ReadonlyMap<string, Shape>;
  /** Of each head that of its label. */
  readonly colors: readonly string[];
  /** Which of two atlases it is. */
  readonly side: Side;
}

/** What the parts are given of an atlas. */
export function viewOf(index: AtlasIndex, source: AtlasSource, dark: boolean, side: Side): AtlasView {
  const maps = fromBase64(index.maps);
  const shapes = marksOf(
    index.patterns.map(({ name }) => name),
    dark,
  );
  const marks = new Map(index.patterns.map(({ name }, at) => [name, shapes[at]]));
  return { index, source, dark, maps, marks, colors: headColors(index, dark), side };
}

/** The place of a head among all. */
export function placeOf({ heads }: AtlasIndex, layer: number, head: number): number {
  return heads.findIndex((tile) => tile.layer === layer && tile.head === head);
}

/** What a head is called, and its labels, in words. */
export function tileWords({ layer, head, labels }: AtlasTile): string {
  const told = labels.map(({ name, score, holds }) => `${name} ${shortShare(score)}${holds ? "" : " (candidate)"}`);
  return `Head ${layer}-${head}: ${told.join(", ") || "no label"}`;
}

interface TileProps {
  view: AtlasView;
  at: number;
  note?: string;
  dim?: boolean;
  tabbed?: boolean;
  named?: boolean;
  /** Number of a text that is to be shown. */
  text?: number;
  /** Where it leads, if not to the page of the head. */
  href?: string;
}

/** The mean map of one head: a link to its page. */
export function Tile({ view, at, note, dim = false, tabbed = true, named = false, text, href }: TileProps) {
  const tile = view.index.heads[at];
  const held = tile.labels.filter(({ holds }) => holds);
  return (
    <a
      class="atlas-tile"
      href={href ?? headAddress(tile.layer, tile.head, text, view.side)}
      // A tile that shows its name is called by what it shows, so that who says it by voice is understood.
      aria-label={named ? undefined : `${tileWords(tile)}${note ? `; ${note}` : ""}`}
      title={`${tileWords(tile)}${note ? `\n${note}` : ""}`}
      data-tile={`${tile.layer}-${tile.head}`}
      data-dim={dim || undefined}
      tabIndex={tabbed ? 0 : -1}
    >
      <MeanMap view={view} at={at} />
      <span class="atlas-marks">
        {held.slice(0, 3).map(({ name }) => (
          <Mark key={name} shape={view.marks.get(name)} size={10} />
        ))}
      </span>
      {named && (
        <span class="atlas-name">
          {tile.layer}-{tile.head}
        </span>
      )}
      {note && <span class="atlas-note">{note}</span>}
    </a>
  );
}
