import { useSignal } from "@preact/signals";
import { weightRamp } from "../../draw/ramps";
import { THUMB_SHARE } from "../../draw/thumbs";
import { AxisChoice, EvidenceBar } from "../../parts/EvidenceBar";
import { HeadGrid, type ThumbStyle } from "../../parts/HeadGrid";
import type { ViewParts } from "../../parts/mount";
import { RankedGrid } from "../../parts/RankedGrid";
import { Scale, WEIGHT_TICKS } from "../../parts/Scale";
import { Segmented } from "../../parts/Segmented";
import { reportDrawn } from "../../parts/Themed";

/** Sides of a thumbnail and the distance between two, in pixels. */
const [LEAST, MOST, GAP] = [34, 110, 8];

/** All heads of all layers as thumbnails; a click opens one in the head view. */
export function ModelView({ store, room }: ViewParts) {
  const style = useSignal<ThumbStyle>("lines");
  const evidence = store.evidence.value;
  const { sort } = store.selection.value;
  const onOpen = () => store.select((now) => ({ ...now, view: "head" }));
  const onDrawn = (canvas: HTMLElement) => store.shown.value && reportDrawn(canvas, store, store.shown.value);
  return (
    <div class="model-view">
      <EvidenceBar store={store}>
        <SortChoice store={store} />
      </EvidenceBar>
      <div class="view-bar">
        <Segmented
          label="Thumbnails"
          options={["lines", "matrices"]}
          chosen={style.value}
          onChoose={(option) => {
            style.value = option as ThumbStyle;
          }}
        />
        <ThumbNote store={store} style={style.value} />
      </div>
      {evidence && sort ? (
        <RankedGrid
          store={store}
          evidence={evidence}
          sort={sort}
          style={style.value}
          gap={GAP}
          onOpen={onOpen}
          onDrawn={onDrawn}
        />
      ) : (
        <HeadGrid
          store={store}
          style={style.value}
          most={Math.max(LEAST, Math.min(MOST, Math.floor((room.value - 40) / store.stack.value.layers.length) - GAP))}
          gap={GAP}
          onOpen={onOpen}
          onDrawn={onDrawn}
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
    store.select((now) => ({ ...now, sort: (name && `${first ? "-" : ""}${name}`) || null }));
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
        <button type="button" class="quiet" data-sort-end onClick={() => choose(sort.replace(/^-/, ""), !low)}>
          {low ? "lowest first" : "highest first"}
        </button>
      )}
    </>
  );
}

/** What thumbnails hide, and their scale. */
export function ThumbNote({ store, style }: { store: ViewParts["store"]; style: ThumbStyle }) {
  const { thumbs, query, key } = store.stack.value;
  const [, , rows, columns] = thumbs.shape;
  const pooled = rows < query.labels.length || columns < key.labels.length;
  const note = pooled ? `largest weight of each of ${rows} × ${columns} blocks` : "every weight";
  if (style === "matrices") {
    return (
      <>
        <small class="view-note">{note} · all heads on one scale</small>
        <Scale ramp={weightRamp(store.dark.value)} ticks={WEIGHT_TICKS} label="weight" />
      </>
    );
  }
  return (
    <small class="view-note">
      {note} · of each row the top {THUMB_SHARE} % · from queries on the left to keys on the right · equal weights are
      equally dark
    </small>
  );
}
