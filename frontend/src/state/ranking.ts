import { computed, effect, type ReadonlySignal, signal } from "@preact/signals-core";
import type { LiveFacts, MattersQuestion, MattersValues, SketchedHead } from "../contract/live";
import type { Answered, Asked, Model } from "../source/model";
import type { Live } from "./live";

// Heads in an order that the model is asked for: by what they matter, by how much they look like a drawing.

/** What is asked of a model: which of its guesses, in numbers and in words. */
export interface MattersTo {
  readonly target: MattersQuestion["target"];
  readonly words: string;
}

/** How much each head matters to a guess. */
export interface Mattering extends MattersTo {
  readonly method: MattersQuestion["method"];
  readonly values: readonly MattersValues[];
  /** What it was measured on. */
  readonly of: Answered;
}

interface MatterParts {
  readonly model: Model;
  readonly facts: LiveFacts;
  readonly asked: ReadonlySignal<Asked>;
  readonly answer: ReadonlySignal<Answered>;
}

/** Which heads matter to a guess: by gradient at once, then head by head with progress, and ended at will. */
export function mattersState({ model, facts, asked, answer }: MatterParts) {
  const progress = signal<number | null>(null);
  const measured = signal<Mattering | null>(null);
  const problem = signal("");
  let running: AbortController | undefined;
  async function measure(method: MattersQuestion["method"], to: MattersTo, ending: AbortSignal): Promise<Mattering> {
    const of = answer.peek();
    const values: MattersValues[] = [];
    const { input, changes } = of.asked;
    const question = { input, changes: [...changes], target: to.target, method };
    for await (const line of model.matters(question, ending)) {
      if ("done" in line) progress.value = line.done / Math.max(1, line.of);
      else values.push(line);
    }
    return { ...to, method, values, of };
  }
  function stop(): void {
    running?.abort();
    running = undefined;
    progress.value = null;
  }
  async function start(to: MattersTo): Promise<void> {
    stop();
    const mine = new AbortController();
    running = mine;
    [progress.value, measured.value, problem.value] = [0, null, ""];
    const began = asked.peek();
    // Whatever is asked next ends this, here as on the server.
    const unwatch = effect(() => {
      if (asked.value !== began) mine.abort();
    });
    try {
      // The quick one first: it is shown until the exact one is done, or for good where that is ended.
      for (const method of facts.matters) {
        measured.value = await measure(method, to, mine.signal);
      }
    } catch (error) {
      if (!mine.signal.aborted) problem.value = error instanceof Error ? error.message : String(error);
    } finally {
      unwatch();
      if (running === mine) stop();
    }
  }
  return {
    /** From 0 to 1; null where nothing runs. */
    progress,
    /** Of what is shown now; null where it was not measured. */
    shown: computed(() => (measured.value?.of === answer.value ? measured.value : null)),
    /** Whether the heads are coloured by it, wherever they stand. */
    onGrid: signal(true),
    problem,
    start,
    stop,
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
