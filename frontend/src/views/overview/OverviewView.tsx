import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { CHOICES } from "../../contract/values";
import { Choice } from "../../parts/Choice";
import { followSize } from "../../parts/followSize";
import type { ViewParts } from "../../parts/mount";
import { Segmented } from "../../parts/Segmented";
import { useWidth } from "../../parts/useWidth";
import { usualDrawing } from "../../state/places";
import type { Selection } from "../../state/selection";
import { FullHead } from "./FullHead";
import { PlateStrip } from "./Plate";
import { placeByLayer, placeByNumber, type Room } from "./place";
import { Tiles } from "./Tiles";
import { LEAST_LINES, styleAt, useQuantityThumbs } from "./useQuantityThumbs";
import { HeatScale, MeasureChoice, WeightScale } from "./WeightScale";

const ORDER_WORDS = { layer: "by layer", kind: "by kind", sharpness: "by sharpness" };
/** Height of the bar above the tiles, and of all beside the picture of the head: headline, names, numbers. */
const [BAR, AROUND_PICTURE] = [36, 82];
/** The tiles may take so much more than a picture: there is no toolbar above them. */
const MORE = 28;
/** Where a sentence of one line ends; below it there is less room for all else. */
const STORY_END = 98;
/** Height of the strip of the clearest heads beside the head. */
const LOW_STRIP = 54;
/** Up to this width the head stands below the tiles. */
const STACKED = 860;
/** In one column tiles are no larger, so that the head is near; beside the head they may be. */
const [MOST_STACKED, MOST] = [46, 120];
const GAP = 12;
/** Padding of a card, left and right. */
const PADDING = 24;
/** Height that the strip of the clearest heads needs under the tiles. */
const STRIP = 120;
const LOWEST_PICTURE = 240;
/** With more heads than this in a layer tiles for lines do not fit a screen. */
const MOST_OF_LINES = 16;
/** Height of the picture in one column. */
const STACKED_PICTURE = 460;

interface Around {
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  readonly room: number;
}

/** The room of the tiles: beside a head, or in one column; lines scroll down rather than become smaller. */
function spaceOf(
  { layers, heads, width, room }: Around,
  how: { stacked: boolean; lines: boolean; wide: boolean },
): Room {
  const part = how.stacked || how.wide ? 1 : heads > 1.4 * layers ? 0.6 : 0.55;
  const inner = part * width - PADDING;
  const most = how.stacked ? MOST_STACKED : MOST;
  return {
    width: inner,
    height: how.stacked || how.lines ? 1e4 : room + MORE,
    most: how.lines ? Math.max(LEAST_LINES + 4, Math.floor((inner - PADDING) / heads)) : most,
  };
}

/** All heads as small matrices, and one of them in full beside them. */
export function OverviewView({ store, room: allRoom }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const lost = useSignal(0);
  useLayoutEffect(() => {
    const [view, page] = [root.current, root.current?.closest("[data-headscope]")];
    if (!page || !view) return;
    return followSize(page, () => {
      lost.value = Math.max(0, view.getBoundingClientRect().top - page.getBoundingClientRect().top - STORY_END);
    });
  }, [lost]);
  const room = useComputed(() => Math.max(LOWEST_PICTURE, allRoom.value - lost.value));
  const stacked = useComputed(() => width.value <= STACKED);
  /** Lines that need more than their half take the whole width, and a click opens a head. */
  const wide = useComputed(() => {
    const { tiles } = store.selection.value;
    const count = store.stack.value.heads;
    return tiles === "lines" && count <= MOST_OF_LINES && (LEAST_LINES + 4) * count > 0.55 * width.value;
  });
  const places = useComputed(() => {
    const { layers, head_numbers: numbers, absent = [] } = store.stack.value;
    const space = spaceOf(
      { layers: layers.length, heads: numbers.length, width: width.value, room: room.value },
      {
        stacked: stacked.value,
        lines: store.selection.value.tiles === "lines" && numbers.length <= MOST_OF_LINES,
        wide: wide.value,
      },
    );
    const { order } = store.selection.value;
    const kinds = store.kinds.value;
    const numbered = layers.map(({ layer }) => layer);
    if (order === "layer" || !kinds || kinds.left > 0)
      return placeByLayer({ layers: numbered, numbers, absent }, space);
    return placeByNumber(kinds, order, space);
  });
  const style = useComputed(() => styleAt(places.value.size, store.selection.value.tiles));
  const thumbs = useQuantityThumbs(store, style);
  const height = useComputed(() => (stacked.value ? 0 : BAR + room.value + MORE));
  const under = useComputed(() => !stacked.value && height.value - BAR - places.value.height >= STRIP);
  const picture = useComputed(() => {
    const around = AROUND_PICTURE + (under.value ? 0 : LOW_STRIP);
    return Math.max(LOWEST_PICTURE, (height.value || STACKED_PICTURE + around) - around);
  });
  const strip = <PlateStrip store={store} tall={under.value} />;
  return (
    <div class="overview-view" ref={root} data-stacked={stacked.value || wide.value || undefined}>
      {width.value > 0 && (
        <div class="overview-cards" style={{ "--tiles": `${places.value.width + PADDING}px`, gap: `${GAP}px` }}>
          <section class="card tiles-card" aria-label="All heads">
            <div class="tiles-bar">
              <Choice
                label="Order of the heads"
                silent
                name="data-order-choice"
                options={CHOICES.order}
                words={ORDER_WORDS}
                chosen={store.selection.value.order}
                onChoose={(order) => store.choose({ order })}
              />
              {!places.value.heat && (
                <Segmented
                  label="Tiles"
                  options={CHOICES.tiles}
                  chosen={store.selection.value.tiles}
                  onChoose={(tiles) => store.choose({ tiles: tiles as Selection["tiles"] })}
                />
              )}
              {places.value.heat && <MeasureChoice store={store} />}
              {places.value.heat && store.kinds.value && store.selection.value.measure !== "kind" ? (
                <HeatScale store={store} kinds={store.kinds.value} />
              ) : (
                <WeightScale store={store} />
              )}
            </div>
            <Tiles
              store={store}
              places={places}
              thumbs={thumbs}
              opens={wide.value ? usualDrawing(store.stack.value) : "overview"}
            />
            {under.value && strip}
          </section>
          {!wide.value && (
            <FullHead store={store} room={picture}>
              {!under.value && strip}
            </FullHead>
          )}
        </div>
      )}
    </div>
  );
}
