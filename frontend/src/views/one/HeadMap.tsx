import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageMoved } from "../../../types/page";
import { signedByte, signedRamp } from "../../draw/color";
import { kindColor, kindRamp } from "../../draw/kinds";
import type { Side } from "../../draw/tokens";
import { largest, liftByte, liftOf, topLift } from "../../draw/values";
import { toByte } from "../../draw/weights";
import { useWidth } from "../../parts/canvas";
import { Scale } from "../../parts/legend";
import { type PairTile, strongestCells, tileLoader } from "../../state/byLayer";
import { headName, movedFacts } from "../../state/evidence";
import { kindAt } from "../../state/kinds";
import { isShare, ticksOf } from "../../state/quantity";
import { sentenceAt, sentenceTile } from "../../state/sentences";
import type { Store } from "../../state/store";
import { readable } from "../../state/words";
import { placeByLayer } from "../overview/place";
import { Tiles, type TilesProps, weightThumbs } from "../overview/Tiles";

/** Largest distance of two heads, and height that all may take. */
const [MOST, HIGHEST] = [36, 420];
const WIDTH = 276;

/** All heads, small; while a token is pinned, what each of them has between it and one key. */
export function HeadMap({ store }: { store: Store }) {
  const thumbs = useComputed(() => weightThumbs(store));
  const pair = store.pinnedPair.value;
  const { moved } = store.stack.value;
  if (moved && !pair && !["weight", "score"].includes(store.quantity.value.name))
    return <MovedMap store={store} moved={moved} />;
  return (
    <section class="card all-heads" aria-label="All heads">
      {pair ? <PairMap store={store} pair={pair} /> : <SmallTiles store={store} thumbs={thumbs} />}
    </section>
  );
}

/** All heads in a column, with what each is in place of its matrix where that is given. */
function SmallTiles(given: Omit<TilesProps, "places">) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const places = useComputed(() => {
    const room = { width: width.value || WIDTH, height: HIGHEST, most: MOST };
    return placeByLayer(given.store.stack.value, room);
  });
  return (
    <div ref={root}>
      <Tiles {...given} places={places} />
    </div>
  );
}

/** Of a comparison: how far each head moved. */
function MovedMap({ store, moved }: { store: Store; moved: PageMoved }) {
  const top = largest(moved.values.flat().map(Number)) || 1;
  const changed = moved.changed.some((row) => row.includes(true));
  const colors = useComputed(() => (at: number) => {
    const { moved: now, heads } = store.stack.value;
    const value = now?.values[Math.floor(at / heads)][at % heads] ?? 0;
    return kindRamp(kindAt(store.kinds.value, at), store.dark.value)[toByte(value / top)];
  });
  return (
    <section class="card all-heads" aria-label="All heads" data-moved>
      <div class="card-head row apart">
        <strong>How far heads moved</strong>
      </div>
      <SmallTiles store={store} colors={colors} moved={moved} />
      <Scale ramp={kindRamp("resting", store.dark.value)} ticks={ticksOf(movedFacts(moved), top)} label="nats" />
      <p class="note muted">
        {moved.label}, mean over rows. Hatched: no more than the spread ({moved.spread}).
        {changed && " ×: changed on purpose."}
      </p>
    </section>
  );
}

/** One query and one key in every head of every layer; a click opens the head. */
function PairMap({ store, pair }: { store: Store; pair: { readonly query: number; readonly key: number } }) {
  const tile = useSignal<PairTile | null>(null);
  const colors = useComputed(() => (at: number) => colorIn(store, tile.value, at));
  const load = useRef(tileLoader(store, (made) => (tile.value = made)));
  useSignalEffect(() => {
    const now = store.pinnedPair.value;
    if (store.stack.value.sentences) tile.value = now && sentenceTile(store, now);
    else if (now) load.current(store.stack.value, now, store.quantity.value).catch(store.fail);
  });
  const name = (side: Side) => {
    const { [side]: tokens, sentences } = store.stack.value;
    if (sentences) return `sentence ${sentenceAt(store.stack.value, side, pair[side]) + 1}`;
    return readable(tokens.labels[pair[side]], 12).text;
  };
  const now = tile.value;
  return (
    <>
      <div class="card-head row apart">
        <strong>This pair in all heads</strong>
        <small data-pair>
          <bdi>{name("query")}</bdi> → <bdi>{name("key")}</bdi>
        </small>
      </div>
      <SmallTiles store={store} colors={colors} words={(at) => textIn(now, at)} />
      {now && (
        <p class="note muted" data-strongest>
          strongest in{" "}
          {strongestCells(now, 4).map(({ at, text }, place) => [
            place > 0 && ", ",
            <span key={at} class="clause-end">
              <b style={{ color: kindColor(kindAt(store.kinds.value, at), store.dark.value) }}>
                {headName({ stack: store.stack.value }, at)}
              </b>{" "}
              {text}
            </span>,
          ])}
        </p>
      )}
    </>
  );
}

function valueIn({ values, stack }: PairTile, at: number): number {
  return values[Math.floor(at / stack.heads)]?.[at % stack.heads] ?? Number.NaN;
}

function textIn(tile: PairTile | null, at: number): string {
  if (!tile || Number.isNaN(valueIn(tile, at))) return "not in this page";
  return tile.text(valueIn(tile, at), tile.evens[Math.floor(at / tile.stack.heads)]);
}

/** The colour of a head's kind, as deep as the value; none where that is not known. */
function colorIn(store: Store, tile: PairTile | null, at: number): number {
  if (!tile || Number.isNaN(valueIn(tile, at))) return 0;
  const { quantity, evens, most, stack } = tile;
  const value = valueIn(tile, at);
  if (quantity.signed) return signedRamp(store.dark.value)[signedByte(value, most)];
  const lift = liftOf(value, evens[Math.floor(at / stack.heads)]);
  const byte = isShare(quantity) ? liftByte(lift, topLift(stack.key.labels.length)) : toByte(Math.max(0, value) / most);
  return kindRamp(kindAt(store.kinds.value, at), store.dark.value)[byte];
}
