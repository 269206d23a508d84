import type { ComponentChildren } from "preact";
import { walkTiles } from "../../parts/walkTiles";

interface HeadGridProps {
  /** Numbers of the layers, from top to bottom. */
  layers: readonly number[];
  /** Of each layer the heads that have a tile, by their place among all. */
  rows: readonly (readonly number[])[];
  columns: number;
  tile: (at: number, place: number) => ComponentChildren;
}

/** Tiles of all heads, a row for each layer; arrow keys go from one to the next. */
export function HeadGrid({ layers, rows, columns, tile }: HeadGridProps) {
  return (
    <div
      class="atlas-grid"
      role="group"
      aria-label="Heads by layer"
      data-small={columns > 16 || undefined}
      style={{ "--columns": columns }}
      onKeyDown={(event) => walkTiles(event, columns)}
    >
      {rows.map((row, at) => (
        <div class="atlas-row" key={layers[at]}>
          <span class="atlas-layer" aria-hidden="true">
            {layers[at]}
          </span>
          {row.map(tile)}
        </div>
      ))}
    </div>
  );
}
