import { useState } from "preact/hooks";
import { ARROWS } from "../../parts/arrows";
import { BOARD, emptyBoard, STAMPS, stampedBoard } from "../../state/atlas";

/** A blank map to draw on: the first and the last tokens of a text. */
export function Board({ board, onDraw }: { board: readonly number[]; onDraw: (board: number[]) => void }) {
  const [brush, setBrush] = useState<number | null>(null);
  const set = (cell: number, value: number) => onDraw(board.map((now, at) => (at === cell ? value : now)));
  return (
    <section class="card atlas-sketch" aria-label="Sketch">
      <h2>Sketch a pattern</h2>
      <p>Draw where tokens look, and the heads that do so come first. The row looks, the column is looked at.</p>
      <div
        class="atlas-board"
        role="group"
        aria-label="Drawing"
        style={{ "--size": BOARD }}
        onPointerUp={() => setBrush(null)}
        onPointerLeave={() => setBrush(null)}
      >
        {board.map((value, cell) => (
          <button
            key={cell}
            type="button"
            data-paint={cell}
            data-seam={Math.floor(cell / BOARD) === BOARD / 2 || undefined}
            tabIndex={cell === 0 ? 0 : -1}
            aria-pressed={value > 0}
            aria-label={`${tokenName(Math.floor(cell / BOARD))} to ${tokenName(cell % BOARD)}`}
            onPointerDown={(event) => {
              event.preventDefault();
              (event.target as Element).releasePointerCapture?.(event.pointerId);
              setBrush(1 - value);
              set(cell, 1 - value);
            }}
            onPointerEnter={() => brush !== null && set(cell, brush)}
            onKeyDown={(event) => onKey(event, cell, () => set(cell, 1 - value))}
          />
        ))}
      </div>
      <div class="atlas-stamps">
        {Object.keys(STAMPS).map((stamp) => (
          <button key={stamp} type="button" class="quiet" onClick={() => onDraw(stampedBoard(stamp))}>
            {stamp}
          </button>
        ))}
        <button
          type="button"
          class="quiet"
          disabled={!board.some((cell) => cell > 0)}
          onClick={() => onDraw(emptyBoard())}
        >
          clear
        </button>
      </div>
    </section>
  );
}

function tokenName(place: number): string {
  return place < BOARD / 2 ? `token ${place + 1}` : `token ${BOARD - place} from the end`;
}

function onKey(event: KeyboardEvent, cell: number, toggle: () => void): void {
  if (event.key === " " || event.key === "Enter") {
    event.preventDefault();
    toggle();
    return;
  }
  const [down, right] = ARROWS[event.key] ?? [0, 0];
  if (down === 0 && right === 0) return;
  event.preventDefault();
  const board = (event.currentTarget as Element).parentElement;
  board?.querySelector<HTMLElement>(`[data-paint="${cell + down * BOARD + right}"]`)?.focus();
}
