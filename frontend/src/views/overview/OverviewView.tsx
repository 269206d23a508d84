import { type ReadonlySignal, type Signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { CHOICES } from "../../../contract/values";
import { parseHex, signedRamp } from "../../draw/color";
import { type KindName, kindColor, kindRamp } from "../../draw/kinds";
import { PICTURE_TOP } from "../../draw/patches";
import { thumbLines } from "../../draw/thumbs";
import { topLift } from "../../draw/values";
import { density, followSize, putPixels, useWidth } from "../../parts/canvas";
import { Choice, Segmented } from "../../parts/controls";
import { Scale } from "../../parts/legend";
import type { ViewParts } from "../../parts/mount";
import { headName } from "../../state/evidence";
import { clearestOfEach, headsByKind, headWords } from "../../state/kinds";
import { isShare } from "../../state/quantity";
import { keepHead, type Selection, usualDrawing } from "../../state/selection";
import type { Store } from "../../state/store";
import { Picture } from "../head/Picture";
import { Headline, picturesOf } from "../one/OneHead";
import { bySharpness, placeByLayer, placeInOrder, type Room } from "./place";
import { LEAST_LINES, paintTile, Tiles, useQuantityThumbs, weightThumbs } from "./Tiles";

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

/** The room of the tiles: beside a head, or in one column; lines scroll down rather than become smaller. */
function spaceOf({ stack, selection }: Store, width: number, room: number, stacked: boolean, wide: boolean): Room {
  const { layers, head_numbers: numbers } = stack.value;
  const lines = selection.value.tiles === "lines" && numbers.length <= MOST_OF_LINES;
  const part = numbers.length > 1.4 * layers.length ? 0.6 : 0.55;
  const inner = (stacked || wide ? 1 : part) * width - PADDING;
  const most = stacked ? MOST_STACKED : MOST;
  return {
    width: inner,
    height: stacked || lines ? 1e4 : room + MORE,
    most: lines ? Math.max(LEAST_LINES + 4, Math.floor((inner - PADDING) / numbers.length)) : most,
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
    return followSize(
      page,
      () => (lost.value = Math.max(0, view.getBoundingClientRect().top - page.getBoundingClientRect().top - STORY_END)),
    );
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
    const space = spaceOf(store, width.value, room.value, stacked.value, wide.value);
    const { order } = store.selection.value;
    const [kinds, ranked] = [store.kinds.value, store.ranked.value];
    if (ranked?.stack === store.stack.value.name) return placeInOrder([ranked], space);
    if (order === "layer" || !kinds || kinds.left > 0) return placeByLayer(store.stack.value, space);
    return placeInOrder(order === "kind" ? headsByKind(kinds) : [bySharpness(kinds)], space);
  });
  const style = useComputed(() => (places.value.size < LEAST_LINES ? "matrices" : store.selection.value.tiles));
  const thumbs = useQuantityThumbs(store, style);
  const height = useComputed(() => (stacked.value ? 0 : BAR + room.value + MORE));
  const under = useComputed(() => !stacked.value && height.value - BAR - places.value.height >= STRIP);
  const picture = useComputed(() => {
    const around = AROUND_PICTURE + (under.value ? 0 : LOW_STRIP);
    return Math.max(LOWEST_PICTURE, (height.value || STACKED_PICTURE + around) - around);
  });
  const strip = <PlateStrip store={store} tall={under.value} />;
  const sheet = useSheet();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the tiles inside are the interactive elements
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tiles inside take the keyboard
    <div
      class="overview-view relative"
      ref={root}
      data-stacked={stacked.value || wide.value || undefined}
      onClick={sheet.raise}
    >
      {width.value > 0 && (
        <div
          class="overview-cards stack relative"
          style={{
            "--tiles": `${places.value.width + PADDING}px`,
            gap: `${GAP}px`,
            minHeight: height.value && `${height.value}px`,
          }}
        >
          <section class="card tiles-card flex slim" aria-label="All heads">
            <TilesBar store={store} heat={places.value.heat} />
            <Tiles
              store={store}
              places={places}
              thumbs={thumbs}
              opens={wide.value ? usualDrawing(store.stack.value) : "overview"}
            />
            {under.value && strip}
          </section>
          {!wide.value && (
            <FullHead store={store} room={picture} raised={sheet.raised}>
              {!under.value && strip}
            </FullHead>
          )}
        </div>
      )}
    </div>
  );
}

/** How all heads stand and are drawn, and what their colours mean. */
function TilesBar({ store, heat }: { store: Store; heat: boolean }) {
  const ranked = store.ranked.value;
  return (
    <div class="tiles-bar row wrap apart">
      <Choice
        label="Order of the heads"
        silent
        name="data-order-choice"
        options={ranked ? ["ranked", ...CHOICES.order] : CHOICES.order}
        words={{ ...ORDER_WORDS, ranked: ranked?.label ?? "" }}
        chosen={ranked ? "ranked" : store.selection.value.order}
        onChoose={(order) => {
          store.ranked.value = null;
          store.choose({ order: order as Selection["order"] });
        }}
      />
      {!heat && !store.patchRows.value && (
        <Segmented
          label="Tiles"
          options={CHOICES.tiles}
          chosen={store.selection.value.tiles}
          onChoose={(tiles) => store.choose({ tiles: tiles as Selection["tiles"] })}
        />
      )}
      <WeightScale store={store} />
    </div>
  );
}

/** On a phone the head looks out from below; a tap on a tile raises it, and the tile stays in sight. */
function useSheet() {
  const raised = useSignal(false);
  const raise = ({ target }: Event) => {
    const tile = target instanceof Element ? target.closest(".tile, .heat-cells") : null;
    if (!tile) return;
    raised.value = true;
    tile.scrollIntoView?.({ block: "nearest" });
  };
  return { raised, raise };
}

interface FullHeadProps {
  store: Store;
  /** Height that the picture may take. */
  room: ReadonlySignal<number>;
  /** Whether the sheet of a phone is raised. */
  raised: Signal<boolean>;
  children: ComponentChildren;
}

/** One head in full beside all: what it does, and its picture as the input asks for it. */
function FullHead({ store, room, raised, children }: FullHeadProps) {
  const drawing = useComputed(() => usualDrawing(store.stack.value));
  const Drawn = picturesOf(store.stack.value)[drawing.value];
  return (
    <section class="card full-head flex slim" aria-label="One head in full" data-raised={raised.value || undefined}>
      <button
        class="sheet-grip"
        aria-label="Raise or lower the head"
        aria-expanded={raised.value}
        onClick={() => (raised.value = !raised.value)}
      />
      <Headline store={store} />
      {drawing.value === "head" ? (
        <Picture store={store} room={room} received onDrawn={() => {}} />
      ) : (
        <Drawn store={store} room={room} plain />
      )}
      {children}
    </section>
  );
}

/** The scale of all tiles, in the hue of heads that rest: the same lightness means the same in every hue. */
function WeightScale({ store: { quantity, dark, stack, patchRows } }: { store: Store }) {
  const { signed, per, label } = quantity.value;
  const most = Math.min(patchRows.value ? PICTURE_TOP : 64, topLift(stack.value.key.labels.length));
  const share = isShare(quantity.value) || per !== "head";
  const ends = share ? ["1", `${most} ×`] : signed ? ["below 0", "above"] : ["0", "most"];
  return (
    <Scale
      ramp={signed && !share ? signedRamp(dark.value) : kindRamp("resting", dark.value)}
      ticks={ends.map((text, at) => [at, text] as const)}
      label={share ? "times the even share" : label}
    />
  );
}

/** With more tokens than this heads are matrices here. */
const MOST_LINES = 64;

interface PlateStripProps {
  store: Store;
  /** Whether there is room for tall pictures. */
  tall: boolean;
}

const STRIP_NAME = "The clearest head of each kind";

/** The clearest head of each kind, small; a click shows one in full. */
function PlateStrip({ store, tall }: PlateStripProps) {
  const kinds = store.kinds.value;
  if (!kinds || kinds.left > 0) return <div class="plate-strip flex" />;
  const clearest = clearestOfEach(kinds);
  // Of random weights no head does any of these.
  if (clearest.length === 0) return null;
  return (
    <div class="plate-strip flex" data-tall={tall || undefined} aria-label={STRIP_NAME} role="group">
      {clearest.map(({ kind, head }) => (
        <button
          key={kind}
          class="plate-head flex apart left slim"
          data-plate={kind}
          style={{ "--kind": kindColor(kind, store.dark.value) }}
          title={headWords(kinds, head).does}
          onClick={() => store.select((now) => keepHead(now, head, store.stack.value))}
        >
          <span class="flex slim">
            <strong>{headName({ stack: store.stack.value }, head)}</strong> <em>{kind === "near" ? "nearby" : kind}</em>
          </span>
          <Plate store={store} head={head} kind={kind} />
        </button>
      ))}
    </div>
  );
}

/** One head, drawn whenever size or colours change: as lines, or where these would be one grey surface as its tile. */
function Plate({ store, head, kind }: { store: Store; head: number; kind: KindName }) {
  const root = useRef<HTMLSpanElement>(null);
  const width = useWidth(root);
  const square = store.patchRows.value !== null || store.stack.value.query.labels.length > MOST_LINES;
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [own, dark, scale] = [weightThumbs(store), store.dark.value, density()];
    if (!canvas || !own || width.value === 0 || head >= own.values.heads) return;
    const [wide, high] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
    const size = Math.min(wide, high);
    if (size === 0) return;
    if (!own.patch && store.stack.value.query.labels.length <= MOST_LINES) {
      const shape = { width: wide, height: high, lineWidth: (wide < 90 * scale ? 1 : 1.6) * scale };
      putPixels(canvas, thumbLines(own.values, head, shape, [parseHex(kindColor(kind, dark))]), shape);
      return;
    }
    const picture = { pixels: new Uint32Array(size * size), width: size };
    paintTile(picture, { head, left: 0, top: 0, size }, own, { kind, dark });
    putPixels(canvas, new Uint8ClampedArray(picture.pixels.buffer), { width: size, height: size });
  });
  return (
    <span class="plate-lines block rigid relative" ref={root} aria-hidden="true">
      <canvas data-canvas="plate" data-square={square || undefined} />
    </span>
  );
}
