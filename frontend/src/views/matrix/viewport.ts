/** Which part of a matrix is seen, in CSS pixels. */
export interface View {
  /** First column and row at the edges; fractions allowed. */
  readonly left: number;
  readonly top: number;
  /** Pixels of one cell. */
  readonly cell: number;
}

export interface Room {
  readonly width: number;
  readonly height: number;
  readonly rows: number;
  readonly columns: number;
}

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
