import { computed, type ReadonlySignal, signal } from "@preact/signals-core";
import type { LiveFacts, MattersQuestion, MattersValues } from "../../types/live";
import type { Answered, Asked, Model } from "../source/model";
import { newestQuestion } from "./live";

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
