import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { LiveOutput } from "../../contract/live";
import type { PageTokens } from "../../contract/page";
import { chance } from "../../state/chance";
import { readable } from "../../state/label";
import { headLine } from "../../state/store";
import { replaceRecord } from "../../state/store/replace";
import { editOf, type Pair, pairState, partnerWords, sideBySide } from "../../state/twoTexts";
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
      return replaceRecord(store, both.source, (now) => sideBySide(line, now));
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
  const edit = models ? { first: [], second: [] } : editOf(tokens[0], tokens[1]);
  const places = new Set(store.selection.value.tray.map((line) => line.split(" ")[0]));
  const beside = [...places].map((place) => partnerWords(both, store.pieceStack.value.name, place)).filter(Boolean);
  const names = models ? [live.facts.name, live.facts.beside] : ["A", "B"];
  return (
    <>
      <div class="live-both stack">
        {[first, second].map(({ opening }, at) => (
          <div key={at} data-both={at}>
            <p dir="auto">
              <small>{names[at]}</small> <Marked tokens={tokens[at]} marked={at === 0 ? edit.first : edit.second} />
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
