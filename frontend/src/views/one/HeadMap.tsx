import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageMoved } from "../../contract/page";
import { rampCss, signedByte, signedRamp } from "../../draw/color";
import { kindColor, kindRamp } from "../../draw/kinds";
import type { Side } from "../../draw/tokens";
import { liftByte, liftOf, topLift, topOf } from "../../draw/values";
import { toByte } from "../../draw/weights";
import { useWidth } from "../../parts/canvas";
import { Scale } from "../../parts/legend";
import { type PairTile, strongestCells, tileLoader } from "../../state/byLayer";
import { headName, movedFacts, movedThumbs } from "../../state/evidence";
import { kindOf } from "../../state/kinds";
import { isShare, ticksOf } from "../../state/quantity";
import { keepHead } from "../../state/selection";
import { sentenceAt, sentenceTile } from "../../state/sentences";
import type { Store } from "../../state/store";
import { readable } from "../../state/words";
import { placeByLayer } from "../overview/place";
import { type GridThumbs, Tiles, weightThumbs } from "../overview/Tiles";

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

interface SmallTilesProps {
  store: Store;
  thumbs: ReadonlySignal<GridThumbs | null>;
  moved?: PageMoved;
}

function SmallTiles(given: SmallTilesProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const places = useComputed(() => {
    const { layers, head_numbers: numbers, absent = [] } = given.store.stack.value;
    const room = { width: width.value || WIDTH, height: HIGHEST, most: MOST };
    return placeByLayer({ layers: layers.map(({ layer }) => layer), numbers, absent }, room);
  });
  return (
    <div ref={root}>
      <Tiles {...given} places={places} />
    </div>
  );
}

/** Of a comparison: how far each head moved. */
function MovedMap({ store, moved }: { store: Store; moved: PageMoved }) {
  const thumbs = useComputed((): GridThumbs | null => {
    const now = store.stack.value.moved;
    return now ? { values: movedThumbs(now), quantity: movedFacts(now), style: "matrices", complete: true } : null;
  });
  const top = thumbs.value ? topOf(thumbs.value.values, 0) : 1;
  const changed = moved.changed.some((row) => row.includes(true));
  return (
    <section class="card all-heads" aria-label="All heads" data-moved>
      <div class="card-head row">
        <strong>How far heads moved</strong>
      </div>
      <SmallTiles store={store} thumbs={thumbs} moved={moved} />
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
  const load = useRef(tileLoader(store, (made) => (tile.value = made)));
  useSignalEffect(() => {
    const now = store.pinnedPair.value;
    if (store.stack.value.sentences) tile.value = now && sentenceTile(store, now);
    else if (now) load.current(store.stack.value, now, store.quantity.value).catch(store.fail);
  });
  const { layers, head_numbers: numbers } = store.stack.value;
  const name = (side: Side) => {
    const { [side]: tokens, sentences } = store.stack.value;
    if (sentences) return `sentence ${sentenceAt(store.stack.value, side, pair[side]) + 1}`;
    return readable(tokens.labels[pair[side]], 12).text;
  };
  const now = tile.value;
  const every = numbers.length > 16 ? 4 : 1;
  return (
    <>
      <div class="card-head row">
        <strong>This pair in all heads</strong>
        <small data-pair>
          <bdi>{name("query")}</bdi> → <bdi>{name("key")}</bdi>
        </small>
      </div>
      <div
        class="pair-map stack"
        role="grid"
        aria-label="Rows are layers, columns are heads"
        style={{ "--heads": numbers.length }}
      >
        <div role="row">
          <span role="columnheader" />
          {numbers.map((number, at) => (
            <span key={number} role="columnheader">
              {at % every ? "" : number}
            </span>
          ))}
        </div>
        {layers.map(({ layer }, row) => (
          <div role="row" key={layer}>
            <span role="rowheader">{layer}</span>
            {numbers.map((number, head) => (
              <PairCell key={number} store={store} tile={now} row={row} head={head} />
            ))}
          </div>
        ))}
      </div>
      {now && (
        <p class="note muted" data-strongest>
          strongest in{" "}
          {strongestCells(now, 4).map(({ at, text }, place) => [
            place > 0 && ", ",
            <span key={at} class="clause-end">
              <b style={{ color: colorOf(store, at) }}>{headName({ stack: store.stack.value }, at)}</b> {text}
            </span>,
          ])}
        </p>
      )}
    </>
  );
}

function PairCell({ store, tile, row, head }: { store: Store; tile: PairTile | null; row: number; head: number }) {
  const stack = store.stack.value;
  const at = row * stack.heads + head;
  const value = tile?.values[row]?.[head] ?? Number.NaN;
  const known = tile && !Number.isNaN(value);
  const text = known ? tile.text(value, tile.evens[row]) : "not in this page";
  const name = headName({ stack }, at);
  return (
    <button
      role="gridcell"
      class="pair-cell slim"
      data-pair-cell={name}
      aria-selected={store.full.value === at}
      aria-label={`Head ${name}: ${text}`}
      title={`Head ${name}: ${text}`}
      style={known ? { background: colour(store, tile, at, value) } : undefined}
      onClick={() => store.select((now) => keepHead(now, at, stack))}
    />
  );
}

/** The colour of a head's kind, as deep as the value. */
function colour(store: Store, tile: PairTile, at: number, value: number): string {
  const { quantity, evens, most, stack } = tile;
  if (quantity.signed) return rampCss(signedRamp(store.dark.value), signedByte(value, most));
  const ramp = kindRamp((store.kinds.value && kindOf(store.kinds.value, at)) ?? "none", store.dark.value);
  const even = evens[Math.floor(at / stack.heads)];
  const top = topLift(stack.key.labels.length);
  return rampCss(ramp, isShare(quantity) ? liftByte(liftOf(value, even), top) : toByte(Math.max(0, value) / most));
}

function colorOf(store: Store, at: number): string {
  return kindColor((store.kinds.value && kindOf(store.kinds.value, at)) ?? "none", store.dark.value);
}
