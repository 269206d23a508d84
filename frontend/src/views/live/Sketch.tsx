import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ARROWS } from "../../parts/arrows";
import { emptySketch, SKETCH_SIZE, STAMPS, sketchOf, sketchState, stamped } from "../../state/ranking";
import { openHead } from "../../state/selection";
import { shortWeight } from "../../state/words";
import type { LiveParts } from "./LiveBar";

const MOST_HEADS = 10;

/** A blank map to draw a pattern on, and the heads that look most like it. */
export function Sketch({ live, store }: LiveParts) {
  const state = useMemo(() => sketchState(live), [live]);
  const { name } = store.pieceStack.value;
  const draw = (cells: number[][]) => state.draw(cells, name);
  const answer = live.answer.value;
  // Another text has other weights.
  useEffect(() => {
    if (answer) state.draw(state.cells.peek(), name);
  }, [answer, state, name]);
  const fromHead = () => {
    const { weights } = store.shown.value ?? {};
    const head = store.heads.value[0];
    if (!weights) return;
    draw(sketchOf((query, key) => weights.row(head, query)[key], weights.queries, weights.keys));
  };
  return (
    <div class="live-sketch">
      <Board cells={state.cells.value} onDraw={draw} />
      <div class="live-stamps">
        <span>Draw where tokens look: rows look, columns are looked at.</span>
        {Object.keys(STAMPS).map((stamp) => (
          <button key={stamp} class="quiet" data-stamp={stamp} onClick={() => draw(stamped(stamp))}>
            {stamp}
          </button>
        ))}
        <button class="quiet" data-stamp-head onClick={fromHead}>
          as the shown head
        </button>
        <button class="quiet" data-stamp-clear onClick={() => draw(emptySketch())}>
          clear
        </button>
        <small role="alert">{state.problem.value}</small>
      </div>
      <ol class="live-likest" aria-label="Heads, the likest first" data-sketched>
        {state.heads.value.slice(0, MOST_HEADS).map(({ layer, head, likeness }) => (
          <li key={`${layer}-${head}`}>
            <button
              data-sketched-head={`${layer}-${head}`}
              onClick={() => store.select((now) => openHead(now, layer, head, store.pieceStack.peek(), false))}
            >
              <b>
                {layer}-{head}
              </b>
              <i style={{ "--part": likeness }} />
              <span class="number">{shortWeight(likeness)}</span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The cells: painted with the pointer held down, or with arrows and the space bar. */
function Board({ cells, onDraw }: { cells: readonly (readonly number[])[]; onDraw: (cells: number[][]) => void }) {
  const brush = useSignal<number | null>(null);
  const set = (row: number, column: number, value: number) =>
    onDraw(cells.map((line, y) => line.map((cell, x) => (y === row && x === column ? value : cell))));
  const walk = (event: KeyboardEvent, row: number, column: number) => {
    const [down, right] = ARROWS[event.key] ?? [0, 0];
    if (down === 0 && right === 0) return;
    event.preventDefault();
    const board = (event.currentTarget as Element).parentElement;
    board?.querySelector<HTMLElement>(`[data-paint="${row + down},${column + right}"]`)?.focus();
  };
  return (
    <div
      class="live-board"
      role="group"
      aria-label="Drawing"
      style={{ "--size": SKETCH_SIZE }}
      onPointerUp={() => {
        brush.value = null;
      }}
      onPointerLeave={() => {
        brush.value = null;
      }}
    >
      {cells.map((line, row) =>
        line.map((value, column) => (
          <button
            key={`${row},${column}`}
            data-paint={`${row},${column}`}
            tabIndex={row + column === 0 ? 0 : -1}
            aria-pressed={value > 0.5}
            aria-label={`Row ${row}, column ${column}`}
            style={{ "--part": value }}
            onPointerDown={(event) => {
              event.preventDefault();
              (event.target as Element).releasePointerCapture?.(event.pointerId);
              brush.value = value > 0.5 ? 0 : 1;
              set(row, column, brush.value);
            }}
            onPointerEnter={() => brush.value !== null && set(row, column, brush.value)}
            onKeyDown={(event) => {
              if (event.key === " " || event.key === "Enter") {
                event.preventDefault();
                set(row, column, value > 0.5 ? 0 : 1);
              } else walk(event, row, column);
            }}
          />
        )),
      )}
    </div>
  );
}
