import { signal } from "@preact/signals-core";
import type { MattersQuestion, MattersValues, SketchedHead } from "../contract/live";
import type { Live } from "./live";

// Heads in an order that the model is asked for: by what they matter, by how much they look like a drawing.

/** Which heads matter to a guess: asked for once, with progress, and ended at will. */
export function mattersState(live: Live) {
  const progress = signal<number | null>(null);
  const values = signal<readonly MattersValues[]>([]);
  const problem = signal("");
  let running: AbortController | undefined;
  async function start(method: MattersQuestion["method"], target: MattersQuestion["target"]): Promise<void> {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    [progress.value, values.value, problem.value] = [0, [], ""];
    const { input, changes } = live.answer.peek().asked;
    try {
      for await (const line of live.model.matters({ input, changes: [...changes], target, method }, mine.signal)) {
        if ("done" in line) progress.value = line.done / Math.max(1, line.of);
        else values.value = [...values.peek(), line];
      }
    } catch (error) {
      if (!mine.signal.aborted) problem.value = error instanceof Error ? error.message : String(error);
    } finally {
      if (running === mine) progress.value = null;
    }
  }
  return {
    /** From 0 to 1; null where nothing runs. */
    progress,
    values,
    problem,
    start,
    stop(): void {
      running?.abort();
      progress.value = null;
    },
  };
}

/** How large a drawing is, in rows and columns. */
export const SKETCH_SIZE = 12;

/** Ready drawings: of each row the columns that are full. */
export const STAMPS: Readonly<Record<string, (row: number) => readonly number[]>> = {
  "token before": (row) => [row - 1],
  "next token": (row) => [row + 1],
  itself: (row) => [row],
  "first token": () => [0],
  "last token": () => [SKETCH_SIZE - 1],
};

export function emptySketch(): number[][] {
  return Array.from({ length: SKETCH_SIZE }, () => Array(SKETCH_SIZE).fill(0));
}

export function stamped(name: string): number[][] {
  return emptySketch().map((cells, row) => cells.map((_, column) => (STAMPS[name]?.(row).includes(column) ? 1 : 0)));
}

/** Weights of a head as a drawing: of each part of the map the largest, the strongest full. */
export function sketchOf(weight: (query: number, key: number) => number, queries: number, keys: number): number[][] {
  const cells = emptySketch();
  let most = 0;
  for (let query = 0; query < queries; query++) {
    for (let key = 0; key < keys; key++) {
      const row = cells[Math.floor((query * SKETCH_SIZE) / queries)];
      const column = Math.floor((key * SKETCH_SIZE) / keys);
      row[column] = Math.max(row[column], weight(query, key));
      most = Math.max(most, row[column]);
    }
  }
  return cells.map((row) => row.map((value) => (most > 0 ? value / most : 0)));
}

/** Which heads look like a drawing; of several drawings only the newest is answered. */
export function sketchState(live: Live) {
  const cells = signal(emptySketch());
  const heads = signal<readonly SketchedHead[]>([]);
  const problem = signal("");
  let running: AbortController | undefined;
  async function ask(stack: string): Promise<void> {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    const { id } = live.answer.peek().opening;
    try {
      const answer = await live.model.sketch({ id, stack, matrix: cells.peek() }, mine.signal);
      if (!mine.signal.aborted) [heads.value, problem.value] = [answer.heads, ""];
    } catch (error) {
      if (!mine.signal.aborted) problem.value = error instanceof Error ? error.message : String(error);
    }
  }
  return {
    cells,
    heads,
    problem,
    draw(next: number[][], stack: string): void {
      cells.value = next;
      heads.value = [];
      if (next.flat().some((value) => value > 0)) void ask(stack);
    },
  };
}
