import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { BOARD, type Drawing, emptyBoard, isDrawn, STAMPS, stampedBoard } from "../state/sketch";
import { Quiet, walkTiles } from "./controls";

interface SketchBoardProps {
  board: Drawing;
  /** Whether it stands for the first and the last tokens of a text, and not for a whole text. */
  ends: boolean;
  onDraw: (board: number[]) => void;
  /** Further buttons that draw. */
  children?: ComponentChildren;
}

/** A blank map to draw on: painted with the pointer held down, or with arrows and the space bar. */
export function SketchBoard({ board, ends, onDraw, children }: SketchBoardProps) {
  const [brush, setBrush] = useState<number | null>(null);
  const set = (cell: number, value: number) => onDraw(board.map((now, at) => (at === cell ? value : now)));
  return (
    <>
      <div
        class="sketch-board stack"
        role="group"
        aria-label="Drawing"
        style={{ "--size": BOARD }}
        onPointerUp={() => setBrush(null)}
        onPointerLeave={() => setBrush(null)}
        onKeyDown={(event) => walkTiles(event, BOARD, "[data-paint]")}
      >
        {board.map((value, cell) => {
          const [row, column] = [Math.floor(cell / BOARD), cell % BOARD];
          const turned = value > 0.5 ? 0 : 1;
          return (
            <button
              key={cell}
              type="button"
              data-paint={`${row},${column}`}
              data-seam={(ends && row === BOARD / 2) || undefined}
              tabIndex={cell === 0 ? 0 : -1}
              aria-pressed={value > 0.5}
              aria-label={`${placeName(row, ends)} to ${placeName(column, ends)}`}
              style={{ "--part": value }}
              onPointerDown={(event) => {
                event.preventDefault();
                (event.target as Element).releasePointerCapture?.(event.pointerId);
                setBrush(turned);
                set(cell, turned);
              }}
              onPointerEnter={() => brush !== null && set(cell, brush)}
              onKeyDown={(event) => {
                if (event.key !== " " && event.key !== "Enter") return;
                event.preventDefault();
                set(cell, turned);
              }}
            />
          );
        })}
      </div>
      <div class="sketch-stamps flex wrap">
        {Object.keys(STAMPS).map((stamp) => (
          <Quiet key={stamp} type="button" data-stamp={stamp} onClick={() => onDraw(stampedBoard(stamp))}>
            {stamp}
          </Quiet>
        ))}
        {children}
        <Quiet type="button" data-stamp-clear disabled={!isDrawn(board)} onClick={() => onDraw(emptyBoard())}>
          clear
        </Quiet>
      </div>
    </>
  );
}

/** What a row or column stands for: a token, or a part of the text. */
function placeName(place: number, ends: boolean): string {
  if (!ends) return `part ${place + 1} of ${BOARD}`;
  return place < BOARD / 2 ? `token ${place + 1}` : `token ${BOARD - place} from the end`;
}
