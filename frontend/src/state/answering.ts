import { computed, signal } from "@preact/signals-core";
import type { AnswerEnd, AnswerQuestion, WrittenToken } from "../contract/live";
import type { Asked } from "../source/model";
import { headName } from "./evidence";
import { isSame, type Live } from "./live";
import { newestQuestion } from "./question";
import { chooseStack } from "./selection";
import type { Store } from "./store";

/** Which heads the heat is the mean of, and whether sinks stay in it. */
export type HeatOf = Pick<AnswerQuestion, "layers" | "heads" | "keep_sinks">;

/** Heads as they are typed: "0 1" whole layers, "1-2 0-5" single heads, nothing for all; null where it is neither. */
export function readHeads(words: string): HeatOf | null {
  const each = words.split(/[\s,;]+/).filter(Boolean);
  if (each.length === 0) return {};
  if (each.every((word) => /^\d{1,4}$/.test(word))) return { layers: each.map(Number) };
  if (!each.every((word) => /^\d{1,4}-\d{1,4}$/.test(word))) return null;
  return { heads: each.map((word) => word.split("-").map(Number) as [number, number]) };
}

/** The head that is looked at, as it is typed. */
export function headLookedAt(store: Store): string {
  return headName({ stack: store.stack.peek() }, store.full.peek());
}

/** What a model answers about a picture: tokens as they come, then where each word looked. */
export function answeringState(live: Live, store: Store) {
  const tokens = signal<readonly WrittenToken[]>([]);
  const last = signal<{ readonly to: Asked; readonly end: AnswerEnd } | null>(null);
  const { run, ...question } = newestQuestion(live.asked);
  async function finish(to: Asked, end: AnswerEnd, ending: AbortSignal): Promise<void> {
    const isNew = last.peek()?.end.id !== end.id;
    last.value = { to, end };
    // Other heads of the same answer are the same record.
    if (!isNew) return;
    const opened = await live.model.opened(end.id, to, live.looking());
    // Something newer may have been asked meanwhile, which this must not take the place of.
    if (ending.aborted || !(await live.show(opened))) return;
    const written = store.page.generation?.stack;
    if (written) store.select((now) => chooseStack(now, written, store.page));
  }
  const ask = (count: number, of: HeatOf) =>
    run(async (ending) => {
      tokens.value = [];
      const to = live.asked.peek();
      const asked = { input: to.input, changes: [...to.changes], tokens: count, ...of };
      for await (const line of live.model.answer(asked, ending)) {
        if ("token" in line) tokens.value = [...tokens.peek(), line];
        else await finish(to, line, ending);
      }
    });
  return {
    ...question,
    /** What was written so far. */
    tokens,
    /** The answer to what is asked now; null where it was not asked. */
    answered: computed(() => {
      const now = last.value;
      return now && isSame(now.to, live.asked.value) ? now.end : null;
    }),
    ask,
  };
}
