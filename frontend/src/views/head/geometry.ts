import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import type { Side } from "../../draw/columns";
import { type Column, columnTop, pitchFor } from "../../draw/columns";
import type { Store } from "../../state/store";

/** Sizes of the picture in CSS pixels. */
export interface Geometry {
  /** Height of the part that can be seen. */
  readonly height: number;
  /** Height of the longer column. */
  readonly longest: number;
  readonly pitch: number;
  readonly query: Column;
  readonly key: Column;
}

/** Height of a token that a finger can hit. */
const TOUCHED = 32;

function coarse(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}

/**
 * How the picture is laid out: from the number of tokens, the room there is along them and how far it is scrolled.
 * It is worked out for columns; rows are the same with both axes exchanged.
 */
export function createLayout(store: Store, room: ReadonlySignal<number>, rows: ReadonlySignal<boolean>) {
  const scroll = signal(0);
  /** Width of the part with the lines, and device pixels in one CSS pixel. */
  const lineArea = signal({ width: 0, density: 1 });
  const geometry = computed((): Geometry => {
    const stack = store.shownStack.value ?? store.stack.value;
    const counts: Record<Side, number> = { query: stack.query.labels.length, key: stack.key.labels.length };
    const most = Math.max(counts.query, counts.key, 1);
    const pitch = pitchFor(most, room.value, coarse() ? TOUCHED : undefined);
    const longest = most * pitch;
    const height = Math.min(longest, room.value);
    const column = (side: Side): Column => {
      const tokens = counts[side];
      return { tokens, pitch, top: columnTop(tokens * pitch, longest, height, scroll.value) };
    };
    return { height, longest, pitch, query: column("query"), key: column("key") };
  });
  return { scroll, lineArea, geometry, rows };
}

export type Layout = ReturnType<typeof createLayout>;
