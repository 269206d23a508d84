import { type Signal, useSignal } from "@preact/signals";
import { computed, signal } from "@preact/signals-core";
import { useEffect, useMemo } from "preact/hooks";
import type { AnswerEnd, WrittenToken } from "../../../types/live";
import { Check } from "../../parts/controls";
import type { Asked } from "../../source/model";
import { isSame, type Live, newestQuestion } from "../../state/live";
import { chooseStack } from "../../state/selection";
import type { Store } from "../../state/store";
import { readable } from "../../state/words";
import { AnswerView } from "../answer/AnswerView";
import type { LiveParts } from "./LiveBar";
import { TokenCount } from "./Writing";

const LENGTHS = [8, 32, 64, 128];

/** The model answers: its words, and which parts of the prompt each of them looked at and needed. */
export function Answering({ live, store }: LiveParts) {
  const state = useMemo(() => answeringState(live, store), [live, store]);
  useEffect(() => state.stop, [state]);
  const [count, sinks] = [useSignal(32), useSignal(false)];
  const answered = state.answered.value;
  /** Turns and documents that are left out of what is asked. */
  const off = useSignal<readonly number[]>([]);
  const ask = () => void state.ask(count.value, sinks.peek(), off.peek());
  /** What was answered is asked again at once. */
  const set = <Of,>(chosen: Signal<Of>, value: Of) => {
    chosen.value = value;
    if (state.answered.peek()) ask();
  };
  const { messages = [], image } = live.asked.value.input;
  return (
    <>
      <p class="live-keep row wrap" role="group" aria-label="What is read">
        {messages.slice(0, -1).map(({ role, content }, at) => (
          <Check
            key={at}
            name={`data-turn-${at}`}
            label={`${role}: ${readable(content, 24).text}`}
            title={content}
            checked={!off.value.includes(at)}
            onChange={(read) => set(off, read ? off.value.filter((each) => each !== at) : [...off.value, at])}
          />
        ))}
      </p>
      <form
        class="live-keep row wrap"
        onSubmit={(event) => {
          event.preventDefault();
          if (!state.running.peek()) ask();
        }}
      >
        <TokenCount count={count} lengths={LENGTHS} />
        {image && (
          <Check
            name="data-answer-sinks"
            label="sinks too"
            title="Leave in the patches that get outsized attention from most words"
            checked={sinks.value}
            onChange={(checked) => set(sinks, checked)}
          />
        )}
        {state.running.value ? (
          <button type="button" class="live-go" data-answer="stop" onClick={state.stop}>
            stop
          </button>
        ) : (
          <button class="live-go" data-answer="start">
            answer
          </button>
        )}
        <small role="alert">{state.problem.value}</small>
      </form>
      {!answered && state.tokens.value.length > 0 && (
        <p class="live-written" data-answer-words>
          {state.tokens.value.map(({ token }) => readable(token, 24).text).join(" ")}
        </p>
      )}
      {answered && (
        <div class="slim" data-answered>
          <AnswerView picture={answered.picture} dark={store.dark.value} />
        </div>
      )}
    </>
  );
}

/** What a model answers: tokens as they come, then what each word looked at. */
export function answeringState(live: Live, store: Store) {
  const tokens = signal<readonly WrittenToken[]>([]);
  const last = signal<{ readonly to: Asked; readonly end: AnswerEnd } | null>(null);
  const { run, ...question } = newestQuestion(live.asked);
  async function finish(to: Asked, end: AnswerEnd, ending: AbortSignal): Promise<void> {
    const isNew = last.peek()?.end.id !== end.id;
    last.value = { to, end };
    // The same answer with its sinks is the same record.
    if (!isNew) return;
    if (!(await live.open(end.id, to, ending))) return;
    const written = store.page.generation?.stack;
    if (written) store.select((now) => chooseStack(now, written, store.page));
  }
  const ask = (count: number, keep_sinks: boolean, off: readonly number[]) =>
    run(async (ending) => {
      tokens.value = [];
      const to = live.asked.peek();
      const messages = to.input.messages?.map((turn, at) => (off.includes(at) ? { ...turn, off: true } : turn));
      const input = { ...to.input, ...(messages && { messages }) };
      const asked = { input, changes: [...to.changes], tokens: count, keep_sinks };
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
