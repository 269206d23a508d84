/** Arrows go from tile to tile; one of them is reached by Tab. */
export function walkTiles(
  event: KeyboardEvent & { currentTarget: HTMLElement },
  columns: number,
  tile = "[data-tile]",
) {
  const [down, right] = ARROWS[event.key] ?? [0, 0];
  if (down === 0 && right === 0) return;
  event.preventDefault();
  const tiles = [...event.currentTarget.querySelectorAll<HTMLElement>(tile)];
  const now = tiles.indexOf(event.target as HTMLElement);
  tiles[now + down * columns + right]?.focus();
}

/** Where the arrow keys lead in a grid: so many rows down and columns to the right. */
export const ARROWS: Readonly<Record<string, readonly [rows: number, columns: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};
