import { type ReadonlySignal, useComputed, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageStack, PageTokens } from "../../../types/page";
import { parseHex, pixelOf, stretched } from "../../draw/color";
import { heat, keyLooks, type LookRules, looksOf, paddedTokens, tileOf, type View } from "../../draw/heat";
import { scoreAt } from "../../draw/scores";
import type { Side } from "../../draw/tokens";
import { liftTile } from "../../draw/values";
import { density, putPixels, useWidth } from "../../parts/canvas";
import { Quiet } from "../../parts/controls";
import { Scale } from "../../parts/legend";
import { reportDrawn, type ViewParts } from "../../parts/mount";
import { isShare, liftTicks, numberPair, ticksOf, valueText, WEIGHT_FACTS } from "../../state/quantity";
import { pinPair } from "../../state/selection";
import type { Store } from "../../state/store";
import { readable, signedNumber } from "../../state/words";
import { clamped, fitted, gestures, labelled, type Room, withCell, zoomed } from "./viewport";

/** One head as a matrix of queries and keys. */
export function MatrixView({ store, room, plain = false, names }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root, ".matrix");
  // Names would leave no room for the matrix of a small picture, as on a phone.
  const named = useComputed(() => (names === "none" || (names && width.value < 2 * 104) ? 0 : 104));
  const picture = useComputed(() => createPicture(store));
  const size = useComputed((): Room => {
    const { query, key } = store.shownStack.value ?? store.stack.value;
    const [rows, columns] = [query.labels.length, key.labels.length];
    const full = {
      width: Math.max(20, width.value - axisSize(query, named.value)),
      height: room.value - (names ? 8 : 96),
      rows,
      columns,
    };
    const { cell } = fitted(full);
    return { ...full, height: Math.max(40, Math.min(full.height, rows * cell)) };
  });
  const zoomKey = useComputed(() => store.selection.value.zoom?.join());
  const view = useComputed(() => {
    const [top, left, columns] = zoomKey.value?.split(",").map(Number) ?? [];
    if (columns === undefined) return fitted(size.value);
    return clamped({ top, left, cell: size.value.width / columns }, size.value);
  });
  const move = ({ top, left, cell }: View) =>
    store.choose({ zoom: [top, left, size.value.width / cell].map((number) => Math.round(1000 * number) / 1000) });
  const planeWidth = useComputed(() => Math.min(size.value.width, size.value.columns * view.value.cell));
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [now, shown, scale] = [picture.value, store.shown.value, density()];
    const { height } = size.value;
    if (!canvas || !now || !shown || width.value <= 0) return;
    const pixels = { width: Math.round(planeWidth.value * scale), height: Math.round(height * scale) };
    const { left, top, cell } = view.value;
    putPixels(canvas, heat(now.tile, { ...pixels, left, top, cell: cell * scale }, now.colors, now.rules), pixels);
    reportDrawn(canvas, store, shown, { cell: cell.toFixed(3) });
  });
  const zoom = (factor: number) => {
    const { width, height } = size.value;
    move(zoomed(view.value, factor, { x: width / 2, y: height / 2 }, size.value));
  };
  const reveal = (query: number, key: number) => {
    const next = withCell(view.value, { query, key }, size.value);
    if (next.left !== view.value.left || next.top !== view.value.top) move(next);
    store.preview({ query, key });
  };
  const pin = (query: number, key: number) => {
    const pair = {
      query: store.pieceAt({ side: "query", token: query }),
      key: store.pieceAt({ side: "key", token: key }),
    };
    store.select((now) => pinPair(now, pair));
  };
  const stack = store.shownStack.value ?? store.stack.value;
  const { height } = size.value;
  return (
    <div class="matrix-view" ref={root}>
      <div class="view-bar row wrap" hidden={plain}>
        <Status store={store} />
        {zoomKey.value !== undefined && (
          <Quiet data-fit onClick={() => store.choose({ zoom: null })}>
            fit
          </Quiet>
        )}
      </div>
      <div
        class="matrix stack"
        style={{
          "--matrix-height": `${height}px`,
          "--matrix-width": `${planeWidth.value}px`,
          "--key-axis": `${axisSize(stack.key, names ? 0 : 88)}px`,
          "--query-axis": `${axisSize(stack.query, named.value)}px`,
        }}
      >
        {!names && <Axis side="key" tokens={stack.key} view={view} size={size} store={store} />}
        {named.value > 0 && <Axis side="query" tokens={stack.query} view={view} size={size} store={store} />}
        <div
          class="matrix-plane relative"
          role="group"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows, plus and minus work here
          tabIndex={0}
          aria-label="Matrix: arrows move, Enter pins, plus and minus zoom"
          {...gestures({ store, view, size, move, zoom, reveal, pin })}
        >
          <div aria-hidden="true">
            <canvas data-canvas="matrix" />
          </div>
          <Marks store={store} stack={stack} view={view} />
        </div>
      </div>
      {!plain && <Legend store={store} picture={picture.value} view={view} />}
    </div>
  );
}

/** Room for the longest label, as far as there is some. */
function axisSize({ labels }: PageTokens, most: number): number {
  const longest = labels.reduce((length, label) => Math.max(length, label.length), 0);
  return Math.min(most, 18 + 7 * longest);
}

/** Lines between the prompt and what the model wrote after it, and around the row and column that are looked at. */
function Marks({ store, stack, view }: { store: Store; stack: PageStack; view: ReadonlySignal<View> }) {
  const { query, key } = store.pair.value;
  const { left, top, cell } = view.value;
  const side = Math.max(2, cell);
  const marks = [
    ["written-rule", stack.query.written, stack.key.written, 2],
    ["cross", query, key, side],
  ] as const;
  return marks.map(([name, row, column, size]) => [
    row != null && <span class={name} style={{ inset: `${(row - top) * cell}px 0 auto`, height: `${size}px` }} />,
    column != null && (
      <span class={name} style={{ inset: `0 auto 0 ${(column - left) * cell}px`, width: `${size}px` }} />
    ),
  ]);
}

interface AxisProps {
  store: Store;
  side: Side;
  tokens: PageTokens;
  view: ReadonlySignal<View>;
  size: ReadonlySignal<Room>;
}

/** Least distance of two labels, in pixels. */
const LEAST = 13;

/** The tokens along one side of a matrix: all, or every few. */
function Axis({ store, side, tokens, view, size }: AxisProps) {
  const { left, top, cell } = view.value;
  const { width, height } = size.value;
  const [first, pixels] = side === "query" ? [top, height] : [left, width];
  const at = store.pair.value[side];
  const shown = labelled(first, cell, pixels, tokens.labels.length, LEAST);
  if (at !== null && !shown.includes(at)) shown.push(at);
  return (
    <div class={`axis axis-${side} relative`} aria-hidden="true">
      {shown.map((token) => {
        const { text, standIn } = readable(tokens.labels[token]);
        const place = `${(token + 0.5 - first) * cell}px`;
        return (
          <span
            key={token}
            class="axis-label muted"
            data-at={token === at || undefined}
            data-near={(at !== null && token !== at && Math.abs(token - at) * cell < LEAST) || undefined}
            data-stand-in={standIn || undefined}
            style={side === "query" ? { top: place } : { left: place }}
          >
            <bdi>{text}</bdi>
          </span>
        );
      })}
    </div>
  );
}

/** The scale of a matrix, its looks without colour, and what was put together. */
function Legend({ store, picture, view }: { store: Store; picture: Picture | null; view: ReadonlySignal<View> }) {
  if (!picture) return null;
  const { looks, top } = picture;
  const facts = store.quantity.value;
  return (
    <div class="view-bar row wrap">
      <small class="view-note muted">
        {[
          facts.per === "layer" && "all heads together",
          view.value.cell * density() < 1 && "zoomed out: the strongest of each block",
        ]
          .filter(Boolean)
          .join(" · ")}
      </small>
      <span class="looks flex wrap muted">
        {looks.map((look) => (
          <small key={look} class="look" data-look={look}>
            {look}
          </small>
        ))}
        <small class="look" data-look="near zero">
          almost 0
        </small>
      </span>
      <Scale
        ramp={store.ramp.value}
        ticks={isShare(facts) ? liftTicks(top) : ticksOf(facts, top)}
        label={isShare(facts) ? "times the even share" : facts.label}
      />
    </div>
  );
}

/** The pair that is looked at, in words. */
function Status({ store }: { store: Store }) {
  const { query, key } = store.pair.value;
  const stack = store.shownStack.value;
  const values = pairValues(store);
  const { name, label } = store.quantity.value;
  const further = name !== "weight" && name !== "score";
  if (!stack || query === null || key === null || !values) {
    return <span class="status flex muted slim">Point at a cell; click to pin it, drag to move, + and − to zoom.</span>;
  }
  return (
    <span class="status flex muted slim" aria-live="polite" data-status>
      <bdi>{readable(stack.query.labels[query]).text}</bdi> → <bdi>{readable(stack.key.labels[key]).text}</bdi>
      <b>{numberPair(WEIGHT_FACTS, stack.key.labels.length)(values.weight, values.even)[0]}</b>
      {values.score !== null && <small>score {signedNumber(values.score)}</small>}
      {further && values.value !== null && (
        <small>
          {label} {valueText(store.quantity.value)(values.value)}
        </small>
      )}
    </span>
  );
}

/** All that a matrix is drawn from. */
export type Picture = NonNullable<ReturnType<typeof createPicture>>;

const EMPTY = { light: ["#eceff3", "#b9c0ca"], dark: ["#1a1e25", "#454d59"] };

export function createPicture(store: Store) {
  const [shown, values, mask] = [store.shown.value, store.values.value, store.mask.value];
  if (!shown || !values || !mask) return null;
  const dark = store.dark.value;
  const { stack, layer, visible } = shown;
  const rules: LookRules = {
    queries: values.queries,
    keys: values.keys,
    visible,
    sliding: layer.kind === "sliding",
    query: mask.query,
    keyLooks: keyLooks(paddedTokens(stack.key.pieces, stack.key.special), mask.key),
  };
  const looks = looksOf(rules);
  const [ground, ink] = EMPTY[dark ? "dark" : "light"].map((hex) => pixelOf(parseHex(hex)));
  const even = store.even.value;
  const { signed } = store.quantity.value;
  const share = isShare(store.quantity.value) && even;
  const own = tileOf(values, store.map.value);
  const tile = share ? liftTile(own, even) : own;
  const last = signed || share ? 255 : tile.bytes.reduce((a, b) => Math.max(a, b), 1);
  const ramp = stretched(store.ramp.value, last);
  // The last colour stands for `top`.
  return {
    tile,
    colors: { ramp, ground, ink, zero: signed ? 128 : 0 },
    rules,
    looks,
    top: tile.top * (last / 255) ** 2,
  };
}

/** What the pair that is looked at has, in the shown head; null for what is not known. */
function pairValues(store: Store) {
  const { query, key } = store.pair.value;
  const [shown, weights, head] = [store.shown.value, store.weights.value, store.head.value];
  const even = store.even.value;
  if (!shown || !weights || !even || query === null || key === null) return null;
  if (query >= weights.queries || key >= weights.keys) return null;
  const { scores } = shown;
  const values = store.values.value;
  return {
    weight: weights.row(head, query)[key],
    even: even.row(0, query)[key],
    score: scores && scoreAt(scores, head, query, key),
    value: values ? values.row(store.map.value, query)[key] : null,
  };
}
