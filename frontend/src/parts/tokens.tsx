import { useMemo } from "preact/hooks";
import type { PageTokens } from "../../types/page";
import { type Box, pictureOf, pixelsOf, placeOf, type Raster } from "../draw/patches";
import type { Place, Side } from "../draw/tokens";
import type { Pictures } from "../source/heads";
import type { Store } from "../state/store";
import { readable } from "../state/words";

/** Longer labels may be cut in a narrow column. */
export const LONG_LABEL = 14;

/** With more tokens than this none has a small picture: they would take most of the time until a page is there. */
const MOST_PICTURED = 600;

interface TokenColumnProps {
  side: Side;
  tokens: PageTokens;
  /** That patches are parts of. */
  pictures: Pictures;
  /** Mark the two texts of a pair. */
  pair: boolean;
}

/**
 * The tokens of one side, as text.
 *
 * It is rendered once for each stack: what changes while the pointer moves is written to the elements directly.
 */
export function TokenColumn({ side, tokens, pictures, pair }: TokenColumnProps) {
  // The same element again and again, so that nothing of it is rendered twice.
  return useMemo(
    () => (
      <div class="column relative" data-column={side}>
        {pair && <TextMarks segments={tokens.segments} />}
        <div class="tokens" role="listbox" aria-label={side === "query" ? "Query tokens" : "Key tokens"}>
          {tokens.labels.map((label, token) => {
            const { text, marks } = tokenOption(tokens, token, side);
            return (
              <div key={token} class="token row" title={label.length > LONG_LABEL ? label : undefined} {...marks}>
                {tokens.labels.length <= MOST_PICTURED && <Patch tokens={tokens} token={token} pictures={pictures} />}
                <bdi class="label">{text}</bdi>
              </div>
            );
          })}
        </div>
      </div>
    ),
    [side, tokens, pictures, pair],
  );
}

function TextMarks({ segments }: { segments: readonly number[] }) {
  return (
    <>
      {runs(segments).map(({ start, length, text }) => (
        <span
          key={start}
          class="text-mark stack muted"
          aria-hidden="true"
          style={{ top: `calc(${start} * var(--pitch) + 3px)`, height: `calc(${length} * var(--pitch) - 6px)` }}
        >
          {text}
        </span>
      ))}
    </>
  );
}

/** The stretches of tokens that belong to the same text. */
export function runs(segments: readonly number[]): { start: number; length: number; text: "A" | "B" }[] {
  const starts = [...segments.keys()].filter((token) => token === 0 || segments[token] !== segments[token - 1]);
  return starts.map((start, index) => ({
    start,
    length: (starts[index + 1] ?? segments.length) - start,
    text: segments[start] === 0 ? "A" : "B",
  }));
}

/** A token as it is shown, and what its element says of it: by that it is found, coloured and pinned. */
export function tokenMarks(tokens: PageTokens, token: number, side: Side) {
  const { text, standIn } = readable(tokens.labels[token] ?? "");
  const marks = {
    "data-side": side,
    "data-token": token,
    "data-special": tokens.special[token] || undefined,
    "data-continues": tokens.continues[token] || undefined,
    "data-stand-in": standIn || undefined,
    "data-rule": token === tokens.written || undefined,
  };
  return { text, marks };
}

/** The same of a token that can be chosen; one of them is reached by Tab. */
export function tokenOption(tokens: PageTokens, token: number, side: Side) {
  const { text, marks } = tokenMarks(tokens, token, side);
  return {
    text,
    marks: { ...marks, role: "option", "aria-selected": "false", tabIndex: token === 0 ? 0 : -1 } as const,
  };
}

type Inside<Kind extends Event> = Kind & { currentTarget: HTMLElement };
export type KeyInside = Inside<KeyboardEvent>;

function placeAt(target: EventTarget | null): Place | null {
  const element = target instanceof Element ? target.closest<HTMLElement>("[data-token]") : null;
  return element && { side: element.dataset.side as Side, token: Number(element.dataset.token) };
}

/** What pointer and keys do with tokens: they are looked at and pinned; `next` is where another key leads to. */
export function tokenEvents(store: Store, next: (event: KeyInside, place: Place) => HTMLElement | null | undefined) {
  const preview = ({ target }: Event) => {
    const place = placeAt(target);
    store.preview(place ? { [place.side]: place.token } : {});
  };
  const pin = ({ target, shiftKey }: MouseEvent | KeyboardEvent) => {
    const place = placeAt(target);
    if (place && store.mask.value?.[place.side][place.token]) store.pin(place, shiftKey);
  };
  return {
    onPointerOver: preview,
    onPointerLeave: () => store.preview({}),
    onFocusIn(event: Inside<FocusEvent>) {
      preview(event);
      const side = placeAt(event.target)?.side;
      // The tab stop of its side stays where the keyboard was last.
      event.currentTarget.querySelector(`[data-side="${side}"][tabindex="0"]`)?.setAttribute("tabindex", "-1");
      if (side) (event.target as HTMLElement).setAttribute("tabindex", "0");
    },
    onFocusOut: () => store.preview({}),
    onClick: pin,
    onKeyDown(event: KeyInside) {
      const place = placeAt(event.target);
      if (!place) return;
      if (event.key === "Enter" || event.key === " ") pin(event);
      else {
        const to = next(event, place);
        if (!to) return;
        to.focus({ preventScroll: true });
      }
      event.preventDefault();
    },
  };
}

/** The element so many tokens on, or the last one on that side. */
export function steppedToken({ currentTarget, target }: KeyInside, to: (at: number) => number | undefined) {
  const all = [...currentTarget.querySelectorAll<HTMLElement>("[data-token]")];
  const wanted = to(all.indexOf(target as HTMLElement));
  return wanted === undefined ? null : all[Math.min(all.length - 1, Math.max(0, wanted))];
}

/** The small picture of a patch, of each record, beside its label; nothing for other tokens. */
export function Patch({ tokens, token, pictures }: { tokens: PageTokens; token: number; pictures: Pictures }) {
  return useMemo(() => {
    const number = pictureOf(tokens, token);
    const [place, grid] = [placeOf(tokens, token), tokens.grids?.[number - 1]];
    return pictures.map((of, record) => {
      const raster = of[number - 1];
      return place && grid && raster ? (
        <Part key={record} class="patch" raster={raster} box={pixelsOf(place, grid, raster)} />
      ) : null;
    });
  }, [tokens, token, pictures]);
}

/** A part of a picture. */
export function Part({ class: name, raster, box }: { class: string; raster: Raster; box: Box }) {
  return <canvas class={name} ref={(canvas) => putPart(canvas, raster, box)} />;
}

function putPart(canvas: HTMLCanvasElement | null, { pixels, width }: Raster, box: Box): void {
  if (!canvas) return;
  const { top, left, bottom, right } = box;
  canvas.width = right - left;
  canvas.height = bottom - top;
  canvas.getContext("2d")?.putImageData(new ImageData(pixels, width), -left, -top);
}
