import type { ReadonlySignal } from "@preact/signals";
import type { View } from "../../draw/heat";
import { ARROWS } from "../../parts/controls";
import type { Store } from "../../state/store";

export type Room = { readonly width: number; readonly height: number; readonly rows: number; readonly columns: number };

const LARGEST_CELL = 48;
const LARGEST_FITTED = 44;

/** The whole matrix, as large as there is room. */
export function fitted({ width, height, rows, columns }: Room): View {
  return { left: 0, top: 0, cell: Math.min(LARGEST_FITTED, width / columns, height / rows) };
}

/** The same part, moved so that it does not leave the matrix, and no smaller than the whole. */
export function clamped(view: View, room: Room): View {
  const cell = Math.min(LARGEST_CELL, Math.max(fitted(room).cell, view.cell));
  const most = (count: number, pixels: number) => Math.max(0, count - pixels / cell);
  const within = (at: number, last: number) => Math.min(last, Math.max(0, at));
  return {
    left: within(view.left, most(room.columns, room.width)),
    top: within(view.top, most(room.rows, room.height)),
    cell,
  };
}

/** Larger or smaller by a factor, with the cell under a point staying there. */
export function zoomed(view: View, factor: number, at: { x: number; y: number }, room: Room): View {
  const cell = Math.min(LARGEST_CELL, Math.max(fitted(room).cell, view.cell * factor));
  const left = view.left + at.x / view.cell - at.x / cell;
  const top = view.top + at.y / view.cell - at.y / cell;
  return clamped({ left, top, cell }, room);
}

export function panned(view: View, dx: number, dy: number, room: Room): View {
  return clamped({ ...view, left: view.left - dx / view.cell, top: view.top - dy / view.cell }, room);
}

/** Moved as little as needed for a cell to be seen. */
export function withCell(view: View, { query, key }: { query: number; key: number }, room: Room): View {
  const into = (at: number, first: number, pixels: number) => {
    const seen = pixels / view.cell;
    if (at < first) return at;
    return at + 1 > first + seen ? at + 1 - seen : first;
  };
  return clamped({ ...view, left: into(key, view.left, room.width), top: into(query, view.top, room.height) }, room);
}

/** The tokens that have room for a label: every one, or every few. */
export function labelled(first: number, cell: number, pixels: number, count: number, least: number): number[] {
  const step = Math.ceil(least / cell);
  const start = Math.ceil(Math.max(0, first - 0.5) / step) * step;
  const found = [];
  for (let token = start; token < count && (token + 0.5 - first) * cell < pixels; token += step) found.push(token);
  return found;
}

interface GestureOptions {
  store: Store;
  view: ReadonlySignal<View>;
  size: ReadonlySignal<Room>;
  move: (view: View) => void;
  zoom: (factor: number) => void;
  reveal: (query: number, key: number) => void;
  pin: (query: number, key: number) => void;
}

type PlaneEvent<Kind extends Event> = Kind & { currentTarget: HTMLElement };

/** A pointer that moved less than this was meant as a click. */
const CLICK = 4;

/** Point, drag, turn the wheel, press keys: what they do in a matrix. */
export function gestures({ store, view, size, move, zoom, reveal, pin }: GestureOptions) {
  let drag: { x: number; y: number; moved: number } | null = null;
  const pointAt = (event: PlaneEvent<MouseEvent>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const cellAt = (event: PlaneEvent<MouseEvent>) => {
    const { x, y } = pointAt(event);
    const { left, top, cell } = view.value;
    const [query, key] = [Math.floor(top + y / cell), Math.floor(left + x / cell)];
    const { rows, columns } = size.value;
    return query >= 0 && query < rows && key >= 0 && key < columns ? { query, key } : null;
  };
  return {
    onPointerDown(event: PlaneEvent<PointerEvent>) {
      drag = { x: event.clientX, y: event.clientY, moved: 0 };
    },
    onPointerMove(event: PlaneEvent<PointerEvent>) {
      if (drag && event.buttons > 0) {
        const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
        const moved = drag.moved + Math.abs(dx) + Math.abs(dy);
        if (moved > CLICK && drag.moved <= CLICK) event.currentTarget.setPointerCapture(event.pointerId);
        move(panned(view.value, dx, dy, size.value));
        drag = { x: event.clientX, y: event.clientY, moved };
        return;
      }
      store.preview(cellAt(event) ?? {});
    },
    onPointerLeave: () => store.preview({}),
    onClick(event: PlaneEvent<MouseEvent>) {
      const cell = cellAt(event);
      if (cell && (drag?.moved ?? 0) <= CLICK) pin(cell.query, cell.key);
      drag = null;
    },
    /** Only with Control or when the matrix has the focus: else the page scrolls. */
    onWheel(event: PlaneEvent<WheelEvent>) {
      const root = event.currentTarget.getRootNode() as Document | ShadowRoot;
      if (!event.ctrlKey && root.activeElement !== event.currentTarget) return;
      event.preventDefault();
      move(zoomed(view.value, Math.exp(-event.deltaY / 400), pointAt(event), size.value));
    },
    onKeyDown(event: PlaneEvent<KeyboardEvent>) {
      const { query, key } = store.pair.value;
      const step = ARROWS[event.key];
      if (step) {
        const { rows, columns } = size.value;
        const move = (at: number | null, by: number, count: number) =>
          at === null ? 0 : Math.min(count - 1, Math.max(0, at + by));
        const at = store.hover.value;
        reveal(move(at.query ?? query, step[0], rows), move(at.key ?? key, step[1], columns));
      } else if (event.key === "Enter" && query !== null && key !== null) {
        const at = store.hover.value;
        pin(at.query ?? query, at.key ?? key);
      } else if (event.key === "+" || event.key === "=") zoom(1.6);
      else if (event.key === "-") zoom(1 / 1.6);
      else return;
      event.preventDefault();
    },
  };
}
