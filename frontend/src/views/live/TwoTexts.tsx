import { useSignal } from "@preact/signals";
import { signal } from "@preact/signals-core";
import { useEffect, useMemo } from "preact/hooks";
import type { LiveLooking, LiveOutput } from "../../../types/live";
import type { PageTokens } from "../../../types/page";
import { type Answered, GONE } from "../../source/model";
import { ModelError } from "../../source/source";
import { type Live, newestQuestion } from "../../state/live";
import { follower } from "../../state/selection";
import { headLine, replaceRecord } from "../../state/store";
import { chance, readable } from "../../state/words";
import type { LiveParts } from "./LiveBar";

/** The same head on a second text, such as one with another word in it, or in the second model. */
export function TwoTexts({ live, store }: LiveParts) {
  const text = useSignal(live.answer.peek().asked.input.text ?? "");
  const state = useMemo(() => pairState(live), [live]);
  useEffect(() => state.stop, [state]);
  const { pair, problem } = state;
  const waits = state.running.value || live.busy.value;
  const show = (other: string | null) =>
    state.show(other, ({ both }) => {
      const line = headLine(store, store.full.peek());
      // One head of the first record, the head that stands beside it, and how they differ.
      const tray = [`${line} quantity=${OF_A}`, line, `${line} quantity=difference`];
      return replaceRecord(store, both.source, (now) => ({ ...now, tray, view: "compare", quantity: "difference" }));
    });
  return (
    <>
      <form
        class="live-from flex top"
        onSubmit={(event) => {
          event.preventDefault();
          void show(text.value);
        }}
      >
        <textarea
          rows={1}
          data-other-text
          aria-label="Second text, to be shown beside the first"
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        <button class="live-go" data-side-by-side disabled={waits}>
          show side by side
        </button>
        {live.facts.beside && (
          <button type="button" class="live-go" data-beside-model disabled={waits} onClick={() => show(null)}>
            beside {live.facts.beside}
          </button>
        )}
      </form>
      <small role="alert">{problem.value}</small>
      {pair.value && <Both pair={pair.value} live={live} store={store} />}
    </>
  );
}

/** Both texts with what differs marked, or both models, and what each says. */
function Both({ pair: { first, second, both, models }, live, store }: LiveParts & { pair: Pair }) {
  const tokens = [first, second].map(({ source }) => source.header.stacks[0].query);
  const edited = (at: number) => {
    const [own, other] = [tokens[at].pieces, tokens[1 - at].pieces];
    const stays = follower(own, other);
    // Of texts of one length each token has its place in the other; else all between the ends that are the same is new.
    const isNew = (token: number) =>
      own.length === other.length ? own[token] !== other[token] : stays(token).length === 0;
    return models ? [] : [...own.keys()].filter(isNew);
  };
  const places = new Set(store.selection.value.tray.map((line) => line.split(" ")[0]));
  const beside = [...places].map((place) => partnerWords(both, store.pieceStack.value.name, place)).filter(Boolean);
  const names = models ? [live.facts.name, live.facts.beside] : ["A", "B"];
  return (
    <>
      <div class="live-both halves stack">
        {[first, second].map(({ opening }, at) => (
          <div key={at} data-both={at}>
            <p dir="auto">
              <small>{names[at]}</small> <Marked tokens={tokens[at]} marked={edited(at)} />
            </p>
            <p class="live-note muted">{said(opening.output)}</p>
          </div>
        ))}
      </div>
      {beside.length > 0 && (
        <p class="live-note muted" data-partner>
          Heads of two models have no common numbers; each stands beside the nearest on this text: {beside.join(", ")}.
        </p>
      )}
    </>
  );
}

/** A text, some of its tokens marked. */
function Marked({ tokens, marked }: { tokens: PageTokens; marked: readonly number[] }) {
  return tokens.labels.map((label, token) => {
    if (tokens.special[token]) return "";
    const word = readable(label, 24).text;
    const gap = token > 0 && !tokens.continues[token] ? " " : "";
    return marked.includes(token) ? [gap, <mark key={token}>{word}</mark>] : gap + word;
  });
}

function said(output: LiveOutput | null): string {
  const place = output?.places.at(-1);
  return (place?.after ?? place?.before ?? [])
    .slice(0, 3)
    .map(({ label, probability }) => `${readable(label, 24).text} ${chance(probability)}`)
    .join(" · ");
}

/** What the page of a comparison calls the weights of its first record. */
const OF_A = "other";

/** "2-0 beside 1-3": which head of the second model a head of the first is set against; empty where it is its own. */
export function partnerWords({ opening: { partners } }: Answered, stack: string, place: string): string {
  const row = partners?.[stack]?.find(([layer, head]) => `${layer}-${head}` === place);
  return row ? `${place} beside ${row[2]}-${row[3]}` : "";
}

/** Two answers, and both as one record. */
export interface Pair {
  readonly first: Answered;
  readonly second: Answered;
  readonly both: Answered;
  /** Whether the second is of the second model. */
  readonly models: boolean;
}

/** The same question to another text, or to the second model, and both beside each other. */
export function pairState(live: Live) {
  const pair = signal<Pair | null>(null);
  const { run, ...question } = newestQuestion();
  async function compared(first: Answered, second: Answered, ending: AbortSignal): Promise<Answered> {
    const looking: LiveLooking = { ...live.looking(), quantity: "difference" };
    try {
      return await live.model.compare(first, second, looking, ending);
    } catch (error) {
      if (!(error instanceof ModelError) || error.status !== GONE) throw error;
      // The server keeps a few records only.
      return live.model.compare(await live.model.ask(first.asked, looking, ending), second, looking, ending);
    }
  }
  async function paired(text: string | null, ending: AbortSignal): Promise<Pair> {
    const first = live.answer.peek();
    const { input, changes } = first.asked;
    const models = text === null;
    // Heads of another model are others: nothing is changed there.
    const other = models ? { input, changes: [] } : { input: { ...input, text }, changes };
    const second = await live.model.askBeside(other, models, live.looking(), ending);
    return { first, second, models, both: await compared(first, second, ending) };
  }
  return {
    pair,
    ...question,
    /** A second text, or null for the second model; what is given with both once they are there. */
    show: (text: string | null, act: (pair: Pair) => Promise<unknown>) =>
      run(async (ending) => {
        const next = await paired(text, ending);
        if (ending.aborted) return;
        pair.value = next;
        await act(next);
      }),
  };
}
