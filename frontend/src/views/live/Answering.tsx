import { type Signal, useSignal } from "@preact/signals";
import { computed, signal } from "@preact/signals-core";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { AnswerEnd, AnswerQuestion, WrittenToken } from "../../../types/live";
import { Check } from "../../parts/controls";
import type { Asked } from "../../source/model";
import { headName } from "../../state/evidence";
import { isSame, type Live, newestQuestion } from "../../state/live";
import { chooseStack } from "../../state/selection";
import type { Store } from "../../state/store";
import { readable } from "../../state/words";
import { AnswerView } from "../answer/AnswerView";
import type { LiveParts } from "./LiveBar";
import { TokenCount } from "./Writing";

const LENGTHS = [8, 32, 64, 128];
const WRONG = "Write whole layers, such as 0 1, or single heads, such as 1-2 0-5.";

/** The model answers: its words, and which parts of the prompt each of them looked at and needed. */
export function Answering({ live, store }: LiveParts) {
  const state = useMemo(() => answeringState(live, store), [live, store]);
  useEffect(() => state.stop, [state]);
  const [count, heads, sinks] = [useSignal(32), useSignal(""), useSignal(false)];
  const of = readHeads(heads.value);
  const answered = state.answered.value;
  /** Turns and documents that are left out of what is asked. */
  const off = useSignal<readonly number[]>([]);
  const ask = () => void state.ask(count.value, { ...readHeads(heads.peek()), keep_sinks: sinks.peek() }, off.peek());
  /** The same answer with other heads. */
  const again = () => state.answered.peek() && readHeads(heads.peek()) && ask();
  const set = <Of,>(chosen: Signal<Of>, value: Of) => {
    chosen.value = value;
    again();
  };
  // What is typed stays until it is complete, whatever is drawn meanwhile.
  const field = useRef<HTMLInputElement>(null);
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
          if (of && !state.running.peek()) ask();
        }}
      >
        <TokenCount count={count} lengths={LENGTHS} />
        <label class="choice row muted" title={`Shares are the mean over these heads. ${WRONG}`}>
          <span>heads</span>
          <input
            ref={field}
            type="text"
            class="numbers-field"
            data-answer-heads
            placeholder="all"
            aria-invalid={of === null}
            onChange={(event) => set(heads, event.currentTarget.value)}
          />
        </label>
        {answered && store.page.generation?.stack === store.pieceStack.value.name && (
          <button
            type="button"
            class="quiet muted"
            data-answer-shown
            onClick={() => {
              set(heads, headName({ stack: store.stack.peek() }, store.full.peek()));
              if (field.current) field.current.value = heads.peek();
            }}
          >
            the heads shown below
          </button>
        )}
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
        <small role="alert">{state.problem.value || (of === null ? WRONG : "")}</small>
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

/** What a model answers: tokens as they come, then what each word looked at. */
export function answeringState(live: Live, store: Store) {
  const tokens = signal<readonly WrittenToken[]>([]);
  const last = signal<{ readonly to: Asked; readonly end: AnswerEnd } | null>(null);
  const { run, ...question } = newestQuestion(live.asked);
  async function finish(to: Asked, end: AnswerEnd, ending: AbortSignal): Promise<void> {
    const isNew = last.peek()?.end.id !== end.id;
    last.value = { to, end };
    // Other heads of the same answer are the same record.
    if (!isNew) return;
    if (!(await live.open(end.id, to, ending))) return;
    const written = store.page.generation?.stack;
    if (written) store.select((now) => chooseStack(now, written, store.page));
  }
  const ask = (count: number, of: HeatOf, off: readonly number[]) =>
    run(async (ending) => {
      tokens.value = [];
      const to = live.asked.peek();
      const messages = to.input.messages?.map((turn, at) => (off.includes(at) ? { ...turn, off: true } : turn));
      const input = { ...to.input, ...(messages && { messages }) };
      const asked = { input, changes: [...to.changes], tokens: count, ...of };
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
