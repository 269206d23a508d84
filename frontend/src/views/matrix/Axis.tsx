import type { ReadonlySignal } from "@preact/signals";
import type { PageTokens } from "../../contract/page";
import type { Side } from "../../draw/place";
import { readable } from "../../state/label";
import type { Store } from "../../state/store";
import { labelled, type Room, type View } from "./viewport";

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
export function Axis({ store, side, tokens, view, size }: AxisProps) {
  const { left, top, cell } = view.value;
  const { width, height } = size.value;
  const [first, pixels] = side === "query" ? [top, height] : [left, width];
  const at = store.pair.value[side];
  const shown = labelled(first, cell, pixels, tokens.labels.length, LEAST);
  if (at !== null && !shown.includes(at)) shown.push(at);
  return (
    <div class={`axis axis-${side}`} aria-hidden="true">
      {shown.map((token) => {
        const { text, standIn } = readable(tokens.labels[token]);
        const place = `${(token + 0.5 - first) * cell}px`;
        return (
          <span
            key={token}
            class="axis-label"
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
