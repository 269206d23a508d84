import { useComputed, useSignal } from "@preact/signals";
import { CHOICES } from "../../contract/values";
import { signedRamp, weightRamp } from "../../draw/ramps";
import { THUMB_SHARE } from "../../draw/thumbs";
import { topOf } from "../../draw/values";
import { AxisChoice, EvidenceBar } from "../../parts/EvidenceBar";
import { type GridThumbs, HeadGrid, LEAST_LINES, styleAt, type ThumbStyle } from "../../parts/HeadGrid";
import type { ViewParts } from "../../parts/mount";
import { RankedGrid } from "../../parts/RankedGrid";
import { Scale } from "../../parts/Scale";
import { Segmented } from "../../parts/Segmented";
import { reportDrawn } from "../../parts/Themed";
import { ticksOf } from "../../state/quantity";
import { LayerGrid } from "./LayerGrid";
import { useQuantityThumbs } from "./useQuantityThumbs";

/** Sides of a thumbnail and the distance between two, in pixels. */
const [LEAST, MOST, GAP] = [34, 200, 8];

/** All heads of all layers as thumbnails; a click opens one in the head view. */
export function ModelView({ store, room }: ViewParts) {
  const style = useComputed((): ThumbStyle => store.selection.value.tiles);
  const side = useSignal(0);
  const evidence = store.evidence.value;
  const { sort } = store.selection.value;
  const thumbs = useQuantityThumbs(store, style);
  const together = store.quantity.value.per === "layer";
  const common = {
    store,
    thumbs,
    onOpen: () => store.choose({ view: "head" }),
    onDrawn: (canvas: HTMLElement, size: number) => {
      side.value = size;
      if (store.shown.value) reportDrawn(canvas, store, store.shown.value);
    },
  };
  const rows = store.stack.value.layers.length;
  return (
    <div class="model-view">
      <EvidenceBar store={store}>
        <SortChoice store={store} />
      </EvidenceBar>
      <div class="view-bar">
        <Segmented
          label="Thumbnails"
          options={CHOICES.tiles}
          chosen={style.value}
          onChoose={(option) => store.choose({ tiles: option as ThumbStyle })}
        />
        <ThumbNote store={store} thumbs={thumbs.value} style={styleAt(side.value, style.value)} />
        {side.value > 0 && styleAt(side.value, style.value) !== style.value && (
          <small class="view-note" data-too-small>
            lines need tiles of {LEAST_LINES} pixels, and these have {Math.round(side.value)}
          </small>
        )}
      </div>
      {together ? (
        <LayerGrid {...common} room={room} />
      ) : evidence && sort ? (
        <RankedGrid {...common} evidence={evidence} sort={sort} gap={GAP} />
      ) : (
        <HeadGrid
          {...common}
          most={Math.max(LEAST, Math.min(MOST, Math.floor((room.value - 40) / rows) - GAP))}
          gap={GAP}
        />
      )}
    </div>
  );
}

/** By layer and head, or by a measure, from either end. */
function SortChoice({ store }: { store: ViewParts["store"] }) {
  const evidence = store.evidence.value;
  if (!evidence) return null;
  const { sort } = store.selection.value;
  const low = sort?.startsWith("-") ?? false;
  const choose = (name: string, first: boolean) =>
    store.choose({ sort: (name && `${first ? "-" : ""}${name}`) || null });
  return (
    <>
      <AxisChoice
        evidence={evidence}
        label="sort by"
        chosen={sort?.replace(/^-/, "") ?? ""}
        first={[["", "layer and head"]]}
        onChoose={(name) => choose(name, low)}
      />
      {sort && (
        <button class="quiet" data-sort-end onClick={() => choose(sort.replace(/^-/, ""), !low)}>
          {low ? "lowest first" : "highest first"}
        </button>
      )}
    </>
  );
}

interface ThumbNoteProps {
  store: ViewParts["store"];
  thumbs: GridThumbs | null;
  style: ThumbStyle;
}

/** What thumbnails hide, and their scale. */
export function ThumbNote({ store, thumbs, style }: ThumbNoteProps) {
  const { thumbs: array, query, key } = store.stack.value;
  const [, , rows, columns] = array.shape;
  const { per, label, signed, name } = store.quantity.value;
  const moved =
    store.stack.value.moved && name !== "weight"
      ? " · numbers: how far heads moved, faded where within the spread"
      : "";
  const all = per === "layer" ? "all layers" : "all heads";
  const pooled = rows < query.labels.length || columns < key.labels.length;
  const word = name === "weight" ? "weight" : "value";
  const note = pooled ? `largest ${word} of each of ${rows} × ${columns} blocks` : `every ${word}`;
  const facts = store.quantity.value;
  const loading = name !== "weight" && !thumbs?.complete && (
    <small class="view-note" role="status" data-thumbs-loading>
      loading …
    </small>
  );
  const scale = (style === "matrices" || name !== "weight") && thumbs && (
    <Scale
      ramp={(signed ? signedRamp : weightRamp)(store.dark.value)}
      ticks={ticksOf(facts, topOf(thumbs.values, 0))}
      label={label}
    />
  );
  if (style === "matrices") {
    return (
      <>
        <small class="view-note">
          {note} · {all} on one scale
          {moved}
        </small>
        {scale}
        {loading}
      </>
    );
  }
  return (
    <>
      <small class="view-note">
        {note} · of each row the top {THUMB_SHARE} % · from queries on the left to keys on the right · equal values are
        equally dark
        {signed && " · blue above 0, orange below"}
        {moved}
      </small>
      {scale}
      {loading}
    </>
  );
}
