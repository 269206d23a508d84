import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LiveOutput } from "../../contract/live";
import { MOST_IN_TRAY } from "../../contract/values";
import type { Answered } from "../../source/model";
import { readable } from "../../state/label";
import { headLine } from "../../state/store";
import { replaceRecord } from "../../state/store/replace";
import { ofEveryRecord } from "../../state/tray";
import { besideEachOther, editOf } from "../../state/twoTexts";
import type { LiveParts } from "./LiveBar";
import { chance } from "./OutputPanel";

/** The same head on a second text, such as one with another word in it. */
export function TwoTexts({ live, store }: LiveParts) {
  const text = useSignal(live.answer.peek().asked.input.text ?? "");
  const other = useSignal<Answered | null>(null);
  const problem = useSignal("");
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const show = async () => {
    running.current?.abort();
    const mine = new AbortController();
    running.current = mine;
    const first = live.answer.peek();
    try {
      const asked = { ...first.asked, input: { ...first.asked.input, text: text.value } };
      const second = await live.model.ask(asked, live.looking(), mine.signal, `beside-${live.facts.name}`);
      other.value = second;
      problem.value = "";
      const line = headLine(store, head());
      const both = besideEachOther(first.source, second.source);
      const tray = ofEveryRecord(line, both.header).slice(0, MOST_IN_TRAY);
      await replaceRecord(store, both, (now) => ({ ...now, tray, view: "compare" }));
    } catch (error) {
      if (!mine.signal.aborted) problem.value = error instanceof Error ? error.message : String(error);
    }
  };
  const head = () => {
    const stack = store.stack.peek();
    const row = stack.layers.findIndex(({ layer }) => layer === store.layerNumber.peek());
    return store.full.peek() ?? row * stack.heads + (store.heads.peek()[0] ?? 0);
  };
  return (
    <>
      <form
        class="live-from"
        onSubmit={(event) => {
          event.preventDefault();
          void show();
        }}
      >
        <textarea
          rows={1}
          data-other-text
          aria-label="Second text, to be shown beside the first"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <button class="live-go" data-side-by-side>
          show side by side
        </button>
      </form>
      <small role="alert">{problem.value}</small>
      {other.value && <Both first={live.answer.value} second={other.value} />}
    </>
  );
}

/** Both texts with what differs marked, and what the model says of each. */
function Both({ first, second }: { first: Answered; second: Answered }) {
  const tokens = [first, second].map(({ source }) => source.header.stacks[0].query);
  const edit = editOf(tokens[0], tokens[1]);
  return (
    <div class="live-both">
      {[first, second].map(({ opening }, at) => (
        <div key={at} data-both={at}>
          <p dir="auto">
            {tokens[at].labels.map((label, token) => {
              const marked = (at === 0 ? edit.first : edit.second).includes(token);
              const gap = token > 0 && !tokens[at].continues[token] ? " " : "";
              const word = readable(label, 24).text;
              return marked ? [gap, <mark key={token}>{word}</mark>] : tokens[at].special[token] ? "" : gap + word;
            })}
          </p>
          <p class="live-note">{said(opening.output)}</p>
        </div>
      ))}
    </div>
  );
}

function said(output: LiveOutput | null): string {
  const place = output?.places.at(-1);
  return (place?.after ?? place?.before ?? [])
    .slice(0, 3)
    .map(({ label, probability }) => `${readable(label, 24).text} ${chance(probability)}`)
    .join(" · ");
}
