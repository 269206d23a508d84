import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Check } from "../../parts/Check";
import { TypedField } from "../../parts/TypedField";
import { answeringState, headLookedAt, readHeads } from "../../state/answering";
import { readable } from "../../state/label";
import type { LiveParts } from "./LiveBar";
import { TokenCount } from "./TokenCount";

const LENGTHS = [8, 32, 64, 128];
const WRONG = "Write whole layers, such as 0 1, or single heads, such as 1-2 0-5.";

/** The model answers the text about its picture: the words, and where each of them looked. */
export function Answering({ live, store }: LiveParts) {
  const state = useMemo(() => answeringState(live, store), [live, store]);
  useEffect(() => state.stop, [state]);
  const [count, heads, sinks] = [useSignal(32), useSignal(""), useSignal(false)];
  const of = readHeads(heads.value);
  const answered = state.answered.value;
  const ask = () => void state.ask(count.value, { ...readHeads(heads.peek()), keep_sinks: sinks.peek() });
  /** The same answer with other heads. */
  const again = () => state.answered.peek() && readHeads(heads.peek()) && ask();
  if (!live.asked.value.input.image)
    return <p class="live-note muted">Choose a picture above; the text is the question about it.</p>;
  return (
    <>
      <form
        class="live-keep row wrap"
        onSubmit={(event) => {
          event.preventDefault();
          if (of && !state.running.peek()) ask();
        }}
      >
        <TokenCount count={count} lengths={LENGTHS} />
        <TypedField
          mark={{ "data-answer-heads": "" }}
          label="heads"
          title={`The heat is the mean over these heads. ${WRONG}`}
          placeholder="all"
          value={heads.value}
          wrong={of === null}
          onTake={(text) => {
            heads.value = text;
            again();
            return true;
          }}
        />
        {answered && store.page.generation?.stack === store.pieceStack.value.name && (
          <button
            type="button"
            class="quiet muted"
            data-answer-shown
            onClick={() => {
              heads.value = headLookedAt(store);
              again();
            }}
          >
            the heads shown below
          </button>
        )}
        <Check
          name="data-answer-sinks"
          label="sinks too"
          title="Leave in the patches that get outsized attention from most words"
          checked={sinks.value}
          onChange={(checked) => {
            sinks.value = checked;
            again();
          }}
        />
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
      {answered && <Heat html={answered.html} />}
    </>
  );
}

/** The words over bars and the picture under the heat of the chosen word, in a tree of their own. */
function Heat({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!place.current) return;
    const root = place.current.shadowRoot ?? place.current.attachShadow({ mode: "open" });
    const inputs = () => [...root.querySelectorAll("input")];
    const chosen = inputs().map(({ checked }) => checked);
    // It holds no script, and every text in it is escaped where it is made.
    root.innerHTML = html;
    const next = inputs();
    // With other heads the same word stays chosen.
    if (next.length !== chosen.length) return;
    for (const [at, input] of next.entries()) input.checked = chosen[at];
  }, [html]);
  return <div ref={place} class="live-answer slim" data-answered />;
}
