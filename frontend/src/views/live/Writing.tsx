import { type Signal, useSignal } from "@preact/signals";
import { signal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { LensLayer, WrittenToken } from "../../../types/live";
import { Check, Choice, Quiet } from "../../parts/controls";
import { type Guess, type Live, newestQuestion } from "../../state/live";
import { chance, readable } from "../../state/words";
import type { LiveParts } from "./LiveBar";
import { WhyButton } from "./Why";

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
          why={
            !state.running.value && (
              <WhyButton live={live} at={state.placeOf(open.value)} id={chosen.id} label={chosen.token} />
            )
          }
          onChoose={(choice) => {
            void state.write(count.value, lens.value, { at: open.value ?? 0, choice });
            open.value = null;
          }}
        />
      )}
    </>
  );
}

type AlternativesProps = { token: Token; why: ComponentChildren; onChoose: (id: number) => void };

/** What a token might have been: a click goes on from there. Below it, what each layer would have said. */
function Alternatives({ token, why, onChoose }: AlternativesProps) {
  const { alternatives, entropy, lens } = token;
  const most = Math.max(...alternatives.map(({ probability }) => probability), 1e-9);
  return (
    <div class="live-alternatives">
      <p class="live-note muted">
        “{readable(token.token, 24).text}” {chance(token.probability)}
        {entropy !== undefined && ` · entropy ${entropy.toFixed(2)} nats`} · click another to go on from it {why}
      </p>
      <ol class="live-guesses">
        {alternatives.map(({ id, label, probability }) => (
          <li key={id} class="stack middle">
            <Quiet data-alternative={id} disabled={id === token.id} onClick={() => onChoose(id)}>
              {readable(label, 24).text}
            </Quiet>
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

/** What each layer would say: the likeliest, and in the tooltip those after it. */
export function LensLayers({ layers }: { layers: readonly LensLayer[] }) {
  return (
    <ol class="live-lens flex wrap" aria-label="Logit lens: what each layer would say" data-lens-layers>
      {layers.map(({ layer, predictions: [best, ...others] }) => (
        <li key={layer} title={others.map(({ label, probability }) => `${label} ${chance(probability)}`).join(" · ")}>
          <small>layer {layer}</small> <bdi>{readable(best?.label ?? "", 24).text}</bdi>{" "}
          <small>{chance(best?.probability)}</small>
        </li>
      ))}
    </ol>
  );
}

/** How many tokens are written at most. */
export function TokenCount({ count, lengths }: { count: Signal<number>; lengths: readonly number[] }) {
  return (
    <Choice
      label="tokens"
      name="data-token-count"
      options={lengths.map(String)}
      chosen={String(count.value)}
      onChoose={(chosen) => (count.value = Number(chosen))}
    />
  );
}

/** A token that was written, or chosen of the text that was read, where the entropy is not known. */
export type Token = Omit<WrittenToken, "entropy"> & Partial<Pick<WrittenToken, "entropy">>;

/** From which token on another one is written. */
type Branch = { readonly at: number; readonly choice: number };

/** What was written up to a branch, with the token that was chosen in place of the next. */
function branched(tokens: readonly Token[], { at, choice }: Branch): readonly Token[] {
  const was = tokens[at];
  const chosen = was?.alternatives.find(({ id }) => id === choice);
  if (!chosen) return tokens.slice(0, at);
  const { id, label, continues, probability } = chosen;
  return [...tokens.slice(0, at), { ...was, id, continues, probability, token: label }];
}

/** What a model writes on: tokens as they come, ended at will, and branched off from an alternative. */
export function writingState(live: Live) {
  const tokens = signal<readonly Token[]>([]);
  const prompt = signal("");
  const { run, ...newest } = newestQuestion(live.asked);
  /** Tokens of the prompt, special ones too: where a written one stands is counted from there. */
  let given = 0;
  /** How many tokens of the text are kept, where it goes on from a guess. */
  let kept: { at?: number } = {};
  /** What was read before it was written on. */
  let text = "";

  /** What is asked: to go on, from what is written already where it is from an alternative. */
  function question(count: number, lens: boolean) {
    const { asked } = live.answer.peek();
    const written = tokens.peek().map(({ id }) => id);
    return { input: { ...asked.input, text }, changes: [...asked.changes], tokens: count, lens, ...kept, written };
  }
  function begin(from?: Branch): void {
    const { asked, source } = live.answer.peek();
    tokens.value = from ? branched(tokens.peek(), from) : [];
    if (from) return;
    given = source.header.stacks[0].query.labels.length;
    prompt.value = asked.input.text ?? "";
    [kept, text] = [{}, prompt.peek()];
  }
  /** The text up to a place, and the guess in place of all that follows. */
  function beginAt({ at, choice, guesses }: Guess): Branch {
    const { asked, source } = live.answer.peek();
    const { labels, special, continues } = source.header.stacks[0].query;
    kept = { at: at + 1 };
    const read = labels.slice(0, at + 1).map((label, token) => {
      const gap = token > 0 && !continues[token] ? " " : "";
      return special[token] ? "" : gap + readable(label, 24).text;
    });
    [given, text, prompt.value] = [at + 1, asked.input.text ?? "", read.join("").trim()];
    const { id, label, continues: goesOn, probability } = choice;
    tokens.value = [{ id, token: label, continues: goesOn, probability, alternatives: [...guesses] }];
    return { at: 0, choice: id };
  }
  async function readLines(count: number, lens: boolean, ending: AbortSignal): Promise<void> {
    for await (const line of live.model.write(question(count, lens), ending)) {
      const { asked } = live.answer.peek();
      if ("token" in line) tokens.value = [...tokens.peek(), line];
      else await live.open(line.id, { ...asked, input: { ...asked.input, text: line.text } }, ending);
    }
  }
  // What was typed or changed just before is part of what is written on.
  const write = (count: number, lens: boolean, from?: Branch) =>
    run((ending) => {
      begin(from);
      return readLines(count, lens, ending);
    }, live.settled());
  return {
    ...newest,
    /** What was written, in order. */
    tokens,
    /** What was given before it. */
    prompt,
    /** The position of the token whose row predicted one that was written. */
    placeOf: (at: number) => given + at - 1,
    write,
    /** Goes on from a guess of the text that was read. */
    writeFrom: (guess: Guess, count: number, lens: boolean) => write(count, lens, beginAt(guess)),
  };
}
