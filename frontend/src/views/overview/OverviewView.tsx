import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { CHOICES } from "../../contract/values";
import { followSize } from "../../parts/followSize";
import { LEAST_LINES } from "../../parts/HeadGrid";
import { HeatScale, MeasureChoice } from "../../parts/HeatGrid";
import type { ViewParts } from "../../parts/mount";
import { Segmented } from "../../parts/Segmented";
import { useWidth } from "../../parts/useWidth";
import { WordsChoice } from "../../parts/WordsNote";
import type { Selection } from "../../state/selection";
import { FullHead } from "./FullHead";
import { PlateStrip } from "./Plate";
import { placeByLayer, placeByNumber } from "./place";
import { Story } from "./Story";
import { Tiles } from "./Tiles";
import { WeightScale } from "./WeightScale";

const ORDER_WORDS = { layer: "by layer", kind: "by kind", sharpness: "by sharpness" };
/** Height of the bar above the tiles, and of all beside the picture of the head: headline, names, numbers. */
const [BAR, AROUND_PICTURE] = [36, 152];
/** The tiles may take so much more than a picture: there is no toolbar above them. */
const MORE = 28;
/** Where a sentence of one line ends; below it there is less room for all else. */
const STORY_END = 125;
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
/** Height of the picture in one column. */
const STACKED_PICTURE = 460;

/** All heads as small matrices, one of them in full beside them, and what they do on this text in one sentence. */
export function OverviewView({ store, room: allRoom }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const lost = useSignal(0);
  useLayoutEffect(() => {
    const [view, page] = [root.current, root.current?.closest("[data-headscope]")];
    const story = view?.firstElementChild;
    if (!page || !story) return;
    return followSize(page, () => {
      lost.value = Math.max(0, story.getBoundingClientRect().bottom - page.getBoundingClientRect().top - STORY_END);
    });
  }, [lost]);
  const room = useComputed(() => Math.max(LOWEST_PICTURE, allRoom.value - lost.value));
  const stacked = useComputed(() => width.value <= STACKED);
  const places = useComputed(() => {
    const { layers, head_numbers: numbers, absent = [] } = store.stack.value;
    const part = numbers.length > 1.4 * layers.length ? 0.6 : 0.55;
    const space = {
      width: (stacked.value ? width.value : part * width.value) - PADDING,
      height: stacked.value ? 1e4 : room.value + MORE,
      most: stacked.value ? MOST_STACKED : MOST,
    };
    const { order } = store.selection.value;
    const kinds = store.kinds.value;
    const numbered = layers.map(({ layer }) => layer);
    if (order === "layer" || !kinds || kinds.left > 0)
      return placeByLayer({ layers: numbered, numbers, absent }, space);
    return placeByNumber(kinds, order, space);
  });
  const height = useComputed(() => (stacked.value ? 0 : BAR + room.value + MORE));
  const under = useComputed(() => !stacked.value && height.value - BAR - places.value.height >= STRIP);
  const picture = useComputed(() => {
    const around = AROUND_PICTURE + (under.value ? 0 : LOW_STRIP);
    return Math.max(LOWEST_PICTURE, (height.value || STACKED_PICTURE + around) - around);
  });
  const strip = <PlateStrip store={store} tall={under.value} />;
  return (
    <div class="overview-view" ref={root} data-stacked={stacked.value || undefined}>
      <Story store={store} />
      {width.value > 0 && (
        <div class="overview-cards" style={{ "--tiles": `${places.value.width + PADDING}px`, gap: `${GAP}px` }}>
          <section class="card tiles-card" aria-label="All heads">
            <div class="tiles-bar">
              <Segmented
                label="Order of the heads"
                options={CHOICES.order}
                labels={ORDER_WORDS}
                chosen={store.selection.value.order}
                onChoose={(order) => store.choose({ order: order as Selection["order"] })}
              />
              {places.value.size >= LEAST_LINES && (
                <Segmented
                  label="Tiles"
                  options={CHOICES.tiles}
                  chosen={store.selection.value.tiles}
                  onChoose={(tiles) => store.choose({ tiles: tiles as Selection["tiles"] })}
                />
              )}
              {places.value.heat && <MeasureChoice store={store} />}
              {!places.value.heat && <WordsChoice store={store} />}
              {places.value.heat && store.kinds.value && store.selection.value.measure !== "kind" ? (
                <HeatScale store={store} kinds={store.kinds.value} />
              ) : (
                <WeightScale store={store} />
              )}
            </div>
            <Tiles store={store} places={places} />
            {under.value && strip}
          </section>
          <FullHead store={store} room={picture}>
            {!under.value && strip}
          </FullHead>
        </div>
      )}
    </div>
  );
}
