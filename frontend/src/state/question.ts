import { effect, type ReadonlySignal, signal } from "@preact/signals-core";
import { messageOf } from "../source/errors";

/** One thing that is asked again and again: of several only the newest is answered, and what went wrong is said. */
export function newestQuestion(asked?: ReadonlySignal<unknown>) {
  const [running, problem] = [signal(false), signal("")];
  let newest: AbortController | undefined;
  return {
    running,
    problem,
    /** Asks, after `first`; ends where something newer is asked, also of the model where that is given. */
    async run(ask: (ending: AbortSignal) => Promise<unknown>, first?: Promise<unknown>): Promise<void> {
      newest?.abort();
      const mine = new AbortController();
      newest = mine;
      [running.value, problem.value] = [true, ""];
      let unwatch: (() => void) | undefined;
      try {
        if (first) await first;
        if (mine.signal.aborted) return;
        const before = asked?.peek();
        unwatch = effect(() => {
          if (asked?.value !== before) mine.abort();
        });
        await ask(mine.signal);
      } catch (error) {
        if (!mine.signal.aborted) problem.value = messageOf(error);
      } finally {
        unwatch?.();
        if (newest === mine) running.value = false;
      }
    },
    stop(): void {
      newest?.abort();
      running.value = false;
    },
  };
}
