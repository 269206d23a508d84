import type { PageTokens } from "../contract/page";
import type { Place, Side } from "../draw/columns";
import { readable } from "../state/label";
import type { Store } from "../state/store";

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
