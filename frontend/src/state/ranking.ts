import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import type { LiveAtlas, LiveFacts, MattersQuestion, MattersValues, SketchedHead } from "../../types/live";
import type { Answered, Asked, Model } from "../source/model";
import { fromBase64, messageOf } from "../source/source";
import { type Live, newestQuestion } from "./live";
import { type Drawing, emptyBoard, isDrawn, likeness, meanBoard, rowsOf } from "./sketch";

// Heads in an order that the model is asked for: by what they matter, by how much they look like a drawing.

/** What is asked of a model: which of its guesses, in numbers and in words. */
export type MattersTo = { readonly target: MattersQuestion["target"]; readonly words: string };

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
  const part = signal(0);
  const measured = signal<Mattering | null>(null);
  const { run, running, ...question } = newestQuestion(asked);
  async function measure(method: MattersQuestion["method"], to: MattersTo, ending: AbortSignal): Promise<Mattering> {
    const of = answer.peek();
    const values: MattersValues[] = [];
    const { input, changes } = of.asked;
    const question = { input, changes: [...changes], target: to.target, method };
    for await (const line of model.matters(question, ending)) {
      if ("done" in line) part.value = line.done / Math.max(1, line.of);
      else values.push(line);
    }
    return { ...to, method, values, of };
  }
  // The quick one first: it is shown until the exact one is done, or for good where that is ended.
  const start = (to: MattersTo) =>
    run(async (ending) => {
      [part.value, measured.value] = [0, null];
      for (const method of facts.matters) measured.value = await measure(method, to, ending);
    });
  return {
    ...question,
    /** From 0 to 1; null where nothing runs. */
    progress: computed(() => (running.value ? part.value : null)),
    /** Of what is shown now; null where it was not measured. */
    shown: computed(() => (measured.value?.of === answer.value ? measured.value : null)),
    /** Whether the heads are coloured by it, wherever they stand. */
    onGrid: signal(true),
    start,
  };
}

/** Which heads look like a drawing, on the text that is shown or over those of an atlas; of several drawings only the newest is answered. */
export function sketchState(live: Live) {
  const board = signal<Drawing>(emptyBoard());
  const over = signal<"text" | "atlas">("text");
  const heads = signal<readonly SketchedHead[]>([]);
  const { run, problem } = newestQuestion();
  let atlas: Promise<AtlasMaps> | undefined;
  /** The maps of an atlas, read once. */
  async function maps(stack: string): Promise<AtlasMaps> {
    atlas ??= live.model.atlas().then((read) => ({ ...read, bytes: fromBase64(read.mean_maps) }));
    // What failed once is asked for again.
    atlas.catch(() => (atlas = undefined));
    const known = await atlas;
    if (known.stack !== stack) throw new Error(`The atlas has the heads of the stack ${known.stack} alone.`);
    return known;
  }
  async function alike(stack: string, ending: AbortSignal): Promise<readonly SketchedHead[]> {
    if (over.peek() === "text") {
      const { id } = live.answer.peek().opening;
      return (await live.model.sketch({ id, stack, matrix: rowsOf(board.peek()) }, ending)).heads;
    }
    const { bytes, side, heads: cells } = await maps(stack);
    const values = likeness(board.peek(), bytes, side);
    const all = cells.map(([layer, head], at) => ({ layer, head, likeness: values[at] }));
    return all.sort((one, other) => other.likeness - one.likeness);
  }
  const rank = (stack: string) =>
    run(async (ending) => {
      try {
        const ranked = isDrawn(board.peek()) ? await alike(stack, ending) : [];
        if (!ending.aborted) heads.value = ranked;
      } catch (error) {
        if (!ending.aborted) heads.value = [];
        throw error;
      }
    });
  function draw(next: Drawing, stack: string): void {
    board.value = next;
    void rank(stack);
  }
  return {
    board,
    over,
    heads,
    problem,
    draw,
    rank: (stack: string) => void rank(stack),
    /** Draws the mean map of a head of the atlas. */
    async drawHead(layer: number, head: number, stack: string): Promise<void> {
      try {
        const { bytes, side, heads: cells } = await maps(stack);
        const at = cells.findIndex(([ofLayer, number]) => ofLayer === layer && number === head);
        draw(meanBoard(bytes, side, at), stack);
      } catch (error) {
        problem.value = messageOf(error);
      }
    },
    choose(next: "text" | "atlas", stack: string): void {
      over.value = next;
      void rank(stack);
    },
  };
}

/** Mean maps, a byte for the root of each weight. */
interface AtlasMaps extends LiveAtlas {
  readonly bytes: Uint8Array;
}
