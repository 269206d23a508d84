import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Check } from "../../parts/Check";
import { chance } from "../../state/chance";
import { readable } from "../../state/label";
import { type Token, writingState } from "../../state/writing";
import { LensLayers } from "./LensLayers";
import type { LiveParts } from "./LiveBar";
import { TokenCount } from "./TokenCount";

const LENGTHS = [1, 10, 20, 50];

/** The model continues the text: token by token, each with what it might have been. */
export function Writing({ live }: LiveParts) {
  const state = useMemo(() => writingState(live), [live]);
  useEffect(() => state.stop, [state]);
  const [count, lens, open] = [useSignal(20), useSignal(false), useSignal<number | null>(null)];
  const branch = live.branch.value;
  useEffect(() => {
    if (!branch) return;
    live.branch.value = null;
    open.value = null;
    void state.writeFrom(branch, count.peek(), lens.peek());
  }, [branch]);
  const tokens = state.tokens.value;
  const chosen = open.value === null ? undefined : tokens[open.value];
  return (
    <>
      <div class="live-keep row wrap">
        <TokenCount count={count} lengths={LENGTHS} />
        <Check
          name="data-lens"
          label="with the logit lens"
          title="Also what the model would say were it to end after each layer"
          checked={lens.value}
          onChange={(checked) => (lens.value = checked)}
        />
        {state.running.value ? (
          <button class="live-go" data-write-stop onClick={state.stop}>
            stop
          </button>
        ) : (
          <button
            class="live-go"
            data-write
            onClick={() => {
              open.value = null;
              void state.write(count.value, lens.value);
            }}
          >
            write on
          </button>
        )}
        <small role="alert">{state.problem.value}</small>
      </div>
      {tokens.length > 0 && (
        <p class="live-written" data-live-written>
          <span class="live-prompt muted" dir="auto">
            {state.prompt.value}
          </span>
          {tokens.map((token, at) => (
            <button
              key={at}
              data-written-token={at}
              aria-expanded={open.value === at}
              aria-label={`${readable(token.token).text}, ${chance(token.probability)}: what else it might have been`}
              style={{ "--part": token.probability }}
              onClick={() => (open.value = open.value === at ? null : at)}
            >
              {readable(token.token, 24).text}
            </button>
          ))}
        </p>
      )}
      {chosen && open.value !== null && (
        <Alternatives
          token={chosen}
          onChoose={(choice) => {
            void state.write(count.value, lens.value, { at: open.value ?? 0, choice });
            open.value = null;
          }}
        />
      )}
    </>
  );
}

/** What a token might have been: a click goes on from there. Below it, what each layer would have said. */
function Alternatives({ token, onChoose }: { token: Token; onChoose: (id: number) => void }) {
  const { alternatives, entropy, lens } = token;
  const most = Math.max(...alternatives.map(({ probability }) => probability), 1e-9);
  return (
    <div class="live-alternatives">
      <p class="live-note muted">
        “{readable(token.token, 24).text}” {chance(token.probability)}
        {entropy !== undefined && ` · entropy ${entropy.toFixed(2)} nats`} · click another to go on from it
      </p>
      <ol class="live-guesses">
        {alternatives.map(({ id, label, probability }) => (
          <li key={id}>
            <button class="quiet muted" data-alternative={id} disabled={id === token.id} onClick={() => onChoose(id)}>
              {readable(label, 24).text}
            </button>
            <span class="live-bars stack" aria-hidden="true">
              <i style={{ "--part": probability / most }} />
            </span>
            <span class="number">{chance(probability)}</span>
          </li>
        ))}
      </ol>
      {lens && <LensLayers layers={lens} />}
    </div>
  );
}
