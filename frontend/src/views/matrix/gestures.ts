import type { ReadonlySignal } from "@preact/signals";
import { ARROWS } from "../../parts/walkTiles";
import type { Store } from "../../state/store";
import { panned, type Room, type View, zoomed } from "./viewport";

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
