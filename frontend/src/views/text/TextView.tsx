import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { PageQuantity, PageTokens } from "../../../types/page";
import { signedByte, wordColors, wordRamp } from "../../draw/color";
import * as patches from "../../draw/patches";
import { type Focus, type Mask, otherSide, type Side } from "../../draw/tokens";
import { type LayerValues, largest, liftByte, liftOf, received, tokenAttention, topLift } from "../../draw/values";
import { toByte } from "../../draw/weights";
import { Minimap } from "../../parts/canvas";
import { Scale } from "../../parts/legend";
import { reportDrawn, type ViewParts } from "../../parts/mount";
import { type KeyInside, Part, steppedToken, tokenEvents, tokenOption } from "../../parts/tokens";
import { NO_PICTURES } from "../../source/heads";
import { isShare, liftTicks, ticksOf } from "../../state/quantity";
import { FEW_QUERIES, isOneText, type Selection } from "../../state/selection";
import type { Store } from "../../state/store";
import { directionOf, readable } from "../../state/words";

type Direction = Selection["direction"];

/** How strongly each token of one side is coloured. */
export type Heat = NonNullable<ReturnType<typeof heatOf>>;

/** The words themselves, with heat by the attention that they receive or give. */
export function TextView({ store, room, plain = false }: ViewParts) {
  const { direction } = store.selection.value;
  const heat = useComputed(() => heatOf(store, store.selection.value.direction, plain));
  const stack = store.shownStack.value ?? store.stack.value;
  const pinned = pinnedName(store);
  const acting: Side = direction === "received" ? "query" : "key";
  const sides = isOneText(stack) ? [acting] : (["query", "key"] as const);
  // Words without a picture are the same for both records.
  const sets = stack.query.areas || stack.key.areas ? store.pictures.value : NO_PICTURES;
  return (
    <div class="text-view flex wrap">
      <div class="view-bar row wrap" hidden={plain}>
        <small class="view-note muted">
          <b>{pinned}</b> {noteOf(store, direction)}
        </small>
        {heat.value && <Scale {...heat.value} ticks={fewer(heat.value.ticks)} />}
      </div>
      <Scrolling
        long={
          !stack.query.areas &&
          Math.max(...sides.map((side) => stack[side].labels.length)) >= (plain ? FEW_QUERIES : LONG)
        }
        store={store}
        heat={heat}
        height={room.value - 20}
      >
        {sets.map((pictures, number) =>
          sides.map((side) => (
            <TextBlock
              key={`${stack.name}-${side}-${number}`}
              store={store}
              side={side}
              tokens={stack[side]}
              pictures={pictures}
              title={[sets.length > 1 && "AB"[number], sides.length > 1 && `${side} tokens`]
                .filter(Boolean)
                .join(" · ")}
              heat={heat}
              both={sides.length === 1}
            />
          )),
        )}
      </Scrolling>
    </div>
  );
}

/** From so many tokens on a text has a box of its own that scrolls; beside a picture earlier. */
const LONG = 200;

interface ScrollingProps {
  store: Store;
  heat: ReadonlySignal<Heat | null>;
  long: boolean;
  height: number;
  children: ComponentChildren;
}

/** A long text in a box that scrolls, with the whole of it as a strip beside it. */
function Scrolling({ store, heat, long, height, children }: ScrollingProps) {
  const root = useRef<HTMLDivElement>(null);
  const show = () => {
    const box = root.current?.querySelector(".text-scroll");
    if (!box || !root.current) return;
    root.current.style.setProperty("--from", `${(100 * box.scrollTop) / box.scrollHeight}%`);
    root.current.style.setProperty("--seen", `${(100 * box.clientHeight) / box.scrollHeight}%`);
  };
  useEffect(show);
  // Brings a pinned token into sight, as when it was found or a link is opened.
  useSignalEffect(() => {
    const { query, key } = store.pins.value;
    const [token] = query.length > 0 ? query : key;
    const box = root.current?.querySelector(".text-scroll");
    const word = token === undefined ? null : box?.querySelector<HTMLElement>(`[data-token="${token}"]`);
    if (!box || !word) return;
    const top = word.getBoundingClientRect().top - box.getBoundingClientRect().top;
    if (top < 0 || top > box.clientHeight - 40) box.scrollTop += top - box.clientHeight / 2;
  });
  // Each line has the colour of the strongest of its tokens.
  const colors = useComputed(() => {
    const now = heat.value;
    if (!now) return null;
    const stronger = (most: number, token: number) =>
      Math.abs(now.values[token]) > Math.abs(now.values[most]) ? token : most;
    const strongest = (first: number, end: number) =>
      Array.from({ length: end - first }, (_, at) => first + at).reduce(stronger);
    return {
      count: now.values.length,
      colorOf: (first: number, end: number) => now.ramp[now.bytes[strongest(first, end)]],
    };
  });
  if (!long) return <>{children}</>;
  return (
    <div class="text-frame flex relative" ref={root}>
      <section class="text-scroll scrolls slim" aria-label="The text" style={{ height: `${height}px` }} onScroll={show}>
        {children}
      </section>
      <Minimap
        colors={colors}
        height={height}
        onGo={(part) => {
          const box = root.current?.querySelector(".text-scroll");
          if (box) box.scrollTop = part * box.scrollHeight - height / 2;
        }}
      />
    </div>
  );
}

/** "from berries": what is shown while tokens are pinned; null where none is. */
function pinnedName({ pins, shownStack, stack }: Store): string | null {
  const side = pins.value.query.length > 0 ? "query" : "key";
  const [first, ...more] = pins.value[side];
  if (first === undefined) return null;
  const name = readable((shownStack.value ?? stack.value)[side].labels[first]).text;
  const who = more.length > 0 ? `${name} and ${more.length} more` : name;
  return side === "query" ? `from ${who}` : `to ${who}`;
}

/** Without anything chosen, `plain` pictures show what the patch with most contrast looks at. */
export function heatOf(store: Store, direction: Direction, plain = false) {
  const [shown, values, mask] = [store.shown.value, store.values.value, store.mask.value];
  if (!shown || !values || !mask) return null;
  const patch =
    plain && shown.stack.query.areas ? patches.contrastPatch(shown.stack.query, store.pictures.value[0] ?? []) : null;
  const focus: Focus | null = store.focus.value ?? (patch === null ? null : { side: "query", tokens: [patch] });
  const { side, heat, even } = heatAndEven(store, focus, direction, values, mask);
  const facts = store.quantity.value;
  const over = shown.stack[side].areas && store.pictures.value.some(({ length }) => length);
  const ramp = facts.signed || over ? store.ramp.value : wordRamp(store.ramp.value);
  return {
    ...scaleOf(facts, heat, even, over ? Math.min(patches.PICTURE_TOP, topLift(values.keys)) : topLift(values.keys)),
    side,
    values: heat,
    /** The number of a token. */
    text: (token: number) => store.numbers.value(heat[token], even[token])[0],
    ramp,
    /** The tokens whose attention it is. */
    focus,
    /** The byte of the ramp that stands for nothing. */
    none: facts.signed ? 128 : 0,
  };
}

/** What is told of each token, and what even attention would make it. */
function heatAndEven(store: Store, focus: Focus | null, direction: Direction, values: LayerValues, mask: Mask) {
  const [even, { pinned }] = [store.even.value, store.selection.value];
  if (focus) {
    const heat = tokenAttention(values, store.map.value, mask, focus, pinned);
    return {
      side: otherSide(focus.side),
      heat,
      even: even ? tokenAttention(even, 0, mask, focus, pinned) : new Float32Array(heat.length),
    };
  }
  if (direction === "received")
    return { side: "key" as Side, heat: received(values, store.map.value, mask), even: store.evenAttention.value };
  // What even attention gives to each key of a query is also the largest that it gives.
  const heat = strongestGiven(store);
  return { side: "query" as Side, heat, even: heat.map((_, query) => largest(even?.row(0, query) ?? [])) };
}

/** Where each value stands in its ramp, and the words of that. */
function scaleOf(facts: PageQuantity, heat: Float32Array, even: Float32Array, top: number) {
  if (isShare(facts)) {
    const bytes = Uint8Array.from(heat, (weight, token) => liftByte(liftOf(weight, even[token]), top));
    return { bytes, ticks: liftTicks(top), label: "times the even share" };
  }
  const most = largest(heat) || 1e-6;
  const byte = (value: number) => (Number.isFinite(value) ? signedByte(value, most) : 128);
  const bytes = Uint8Array.from(heat, facts.signed ? byte : (value) => toByte(Math.max(0, value) / most));
  return { bytes, ticks: ticksOf(facts, most), label: facts.label };
}

/** The value of largest size that each query gives. */
function strongestGiven(store: Store): Float32Array {
  const [values, mask, map] = [store.values.value, store.mask.value, store.map.value];
  if (!values || !mask) return new Float32Array();
  const larger = (a: number, b: number) => (Math.abs(b) > Math.abs(a) ? b : a);
  const strongest = (row: Float32Array) =>
    row.reduce((most, value, key) => (mask.key[key] && Number.isFinite(value) ? larger(most, value) : most), 0);
  return Float32Array.from({ length: values.queries }, (_, query) => {
    return mask.query[query] ? strongest(values.row(map, query)) : 0;
  });
}

function noteOf(store: Store, direction: Direction): string {
  const { name, label, per } = store.quantity.value;
  const who = per === "layer" ? " · all heads together" : "";
  const what = name === "weight" ? "attention" : label;
  const focus = store.focus.value;
  if (focus) return `${what}: ${focus.side === "query" ? "where it looks" : "who looks at it"}${who}`;
  return `${direction === "received" ? `${what} received, mean over queries` : `strongest ${label} given`}${who}`;
}

/** At most three of the marks of a scale. */
function fewer<Tick>(ticks: readonly Tick[]): readonly Tick[] {
  return ticks.length < 5 ? ticks : [ticks[0], ticks[2], ticks[4]];
}

interface TextBlockProps {
  store: Store;
  /** The side that these tokens act as when they are pointed at. */
  side: Side;
  tokens: PageTokens;
  /** That patches are parts of. */
  pictures: readonly patches.Raster[];
  title: string;
  heat: ReadonlySignal<Heat | null>;
  /** The same words are also the other side. */
  both: boolean;
}

/** One text, whose colours are written straight to the elements. */
export function TextBlock({ store, side, tokens, pictures, title, heat, both }: TextBlockProps) {
  const root = useRef<HTMLDivElement>(null);
  const rendered = useSignal(0);
  useSignalEffect(() => {
    void rendered.value;
    const now = heat.value;
    const shown = store.shown.value;
    if (!root.current || !now || !shown) return;
    paint(root.current, store, both || now.side === side ? now : null);
    reportDrawn(root.current, store, shown);
  });
  // The same element again and again, so that nothing of it is rendered twice.
  const words = useMemo(
    () => <Words side={side} tokens={tokens} pictures={pictures} title={title} />,
    [side, tokens, pictures, title],
  );
  // What is written to the elements is written again where these are new.
  useLayoutEffect(() => {
    if (words) rendered.value = rendered.peek() + 1;
  }, [words, rendered]);
  return (
    <div class="text-block">
      {title && <small class="view-note muted">{title}</small>}
      <div ref={root} {...tokenEvents(store, (event, { token }) => steppedToken(event, stepIn(event, tokens, token)))}>
        {words}
      </div>
    </div>
  );
}

/** Texts up to this many tokens are written large. */
const SHORT = 48;

type WordsProps = { side: Side; tokens: PageTokens; pictures: readonly patches.Raster[]; title: string };

function Words({ side, tokens, pictures, title }: WordsProps) {
  return (
    <div
      class="words"
      data-short={tokens.labels.length <= SHORT || undefined}
      data-several={(tokens.grids?.length ?? 0) > 1 || undefined}
      role="listbox"
      dir={directionOf(tokens)}
      aria-label={`Text, ${title || `${side} tokens`}`}
      aria-orientation="horizontal"
    >
      {(tokens.runs ?? [[0]]).map(([first, stop, picture]) => {
        const words = tokens.labels.slice(first, stop).map((_, number) => [
          // Without a space between two words a browser would break lines inside words.
          tokens.continues[first + number] ? null : " ",
          <Word key={number} side={side} token={first + number} tokens={tokens} />,
        ]);
        const raster = picture && pictures[picture - 1];
        return raster ? (
          <Pictured key={`${first}-`} tokens={tokens} first={first} stop={stop} raster={raster}>
            {words}
          </Pictured>
        ) : (
          <span key={first} class={picture ? "patches stack" : undefined}>
            {words}
          </span>
        );
      })}
    </div>
  );
}

type PicturedProps = {
  tokens: PageTokens;
  first: number;
  stop: number;
  raster: patches.Raster;
  children: ComponentChildren;
};

/** Patches under the part of the picture that they are, which lies over their heat as ink. */
function Pictured({ tokens, first, stop, raster, children }: PicturedProps) {
  const box = patches.boxOf(tokens, first, stop);
  const part = patches.pixelsOf(
    box,
    tokens.grids?.[patches.pictureOf(tokens, first) - 1] ?? [box.bottom, box.right],
    raster,
  );
  const [width, height] = [part.right - part.left, part.bottom - part.top];
  const style = {
    aspectRatio: `${width} / ${height}`,
    width: `calc(var(--most) * ${Math.min(1, width / height)})`,
    // Rows and columns before those that are here take no room.
    gridTemplate: `${tracks(box.top, box.bottom)} / ${tracks(box.left, box.right)}`,
  };
  return (
    <span
      class="patches pictured stack relative"
      data-coarse={Math.max(width, height) < COARSE || undefined}
      data-bright={patches.greyOf(raster, part)[0] > 127 || undefined}
      data-frame={tokens.frames?.[patches.pictureOf(tokens, first) - 1]}
      style={style}
    >
      {children}
      <Part class="ink" raster={raster} box={part} />
    </span>
  );
}

/** Pictures with fewer pixels are shown pixel by pixel. */
const COARSE = 120;

function tracks(start: number, stop: number): string {
  return `${start ? `repeat(${start}, 0)` : ""} repeat(${stop - start}, minmax(0, 1fr))`;
}

function Word({ side, token, tokens }: { side: Side; token: number; tokens: PageTokens }) {
  const { text, marks } = tokenOption(tokens, token, side);
  return (
    <span class="word" {...marks} style={{ gridArea: tokens.areas?.[token] }}>
      <bdi class="label">{text}</bdi>
    </span>
  );
}

function paint(root: HTMLElement, store: Store, heat: Heat | null): void {
  const [mask, pins] = [store.mask.value, store.pins.value];
  const focus = heat ? heat.focus : store.focus.value;
  for (const element of root.querySelectorAll<HTMLElement>("[data-token]")) {
    const token = Number(element.dataset.token);
    const side = element.dataset.side as Side;
    colour(element, heat, token);
    const pinned = pins[side].includes(token);
    element.setAttribute("aria-selected", String(pinned));
    element.toggleAttribute("data-lit-self", pinned || Boolean(focus?.side === side && focus.tokens.includes(token)));
    element.toggleAttribute("data-hidden", Boolean(heat && mask && !mask[heat.side][token]));
  }
}

function colour(element: HTMLElement, heat: Heat | null, token: number): void {
  const label = element.textContent ?? "";
  const byte = heat?.bytes[token] ?? 0;
  const shown = heat && byte !== heat.none;
  Object.assign(element.style, shown ? wordColors(heat.ramp, byte) : { background: "", color: "" });
  element.title = heat ? heat.text(token) : "";
  element.setAttribute("aria-label", `${label} ${element.title}`.trim());
}

/** Where an arrow leads: along the text, or from line to line. */
function stepIn({ key, currentTarget }: KeyInside, tokens: PageTokens, token: number) {
  const back = currentTarget.querySelector("[dir=rtl]") ? 1 : -1;
  return (at: number) =>
    ({
      ArrowLeft: at + back,
      ArrowRight: at - back,
      ArrowUp: patches.rowStep(tokens, token, -1),
      ArrowDown: patches.rowStep(tokens, token, 1),
    })[key];
}
