import type { ReadonlySignal } from "@preact/signals";
import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { PageTokens } from "../../contract/page";
import { textOn } from "../../draw/color";
import type { Side } from "../../draw/columns";
import { boxOf, greyOf, pictureOf, pixelsOf, type Raster, rowStep } from "../../draw/patches";
import { rampColor, rampCss } from "../../draw/ramps";
import { reportDrawn } from "../../parts/mount";
import { Part } from "../../parts/Patch";
import { type KeyInside, steppedToken, tokenEvents, tokenOption } from "../../parts/tokenList";
import { directionOf } from "../../state/script";
import type { Store } from "../../state/store";
import type { Heat } from "./TextView";

interface TextBlockProps {
  store: Store;
  /** The side that these tokens act as when they are pointed at. */
  side: Side;
  tokens: PageTokens;
  /** That patches are parts of. */
  pictures: readonly Raster[];
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

interface WordsProps {
  side: Side;
  tokens: PageTokens;
  pictures: readonly Raster[];
  title: string;
}

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

interface PicturedProps {
  tokens: PageTokens;
  first: number;
  stop: number;
  raster: Raster;
  children: ComponentChildren;
}

/** Patches under the part of the picture that they are, which lies over their heat as ink. */
function Pictured({ tokens, first, stop, raster, children }: PicturedProps) {
  const box = boxOf(tokens, first, stop);
  const part = pixelsOf(box, tokens.grids?.[pictureOf(tokens, first) - 1] ?? [box.bottom, box.right], raster);
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
      data-bright={greyOf(raster, part)[0] > 127 || undefined}
      data-frame={tokens.frames?.[pictureOf(tokens, first) - 1]}
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
  element.style.background = shown ? rampCss(heat.ramp, byte) : "";
  element.style.color = shown ? textOn(rampColor(heat.ramp, byte)) : "";
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
      ArrowUp: rowStep(tokens, token, -1),
      ArrowDown: rowStep(tokens, token, 1),
    })[key];
}
