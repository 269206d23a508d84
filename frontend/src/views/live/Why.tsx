import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { ModelChange } from "../../../types/live";
import type { Live } from "../../state/live";
import { percent, quoted, readable } from "../../state/words";
import type { WhyLine } from "../why/place";
import type { LiveParts } from "./LiveBar";

/** Asks why a token was said after the row at a place. */
export function WhyButton({ live, at, id, label }: { live: Live; at: number; id: number; label: string }) {
  const name = `Why ${quoted(readable(label, 24).text)}?`;
  return (
    <button
      class="quiet muted"
      data-why={id}
      title={`${name} Which heads made the model say it, and from which words`}
      aria-label={name}
      disabled={live.busy.value}
      onClick={() => void live.why.start(at, id)}
    >
      why?
    </button>
  );
}

/** How far the way back from a token is followed; it is shown in a place of its own, where a line that is pinned is cut. */
export function Why({ live, store }: LiveParts) {
  const { running, progress, problem, shown, stop } = live.why;
  useSignalEffect(() => {
    [store.why.value, store.line.value, store.inWhy.value] = [shown.value?.picture ?? null, null, shown.value !== null];
  });
  const cut = useRef<ModelChange | null>(null);
  useSignalEffect(() => {
    const change = store.line.value && cutOf(store.line.value, store.page.stacks.length > 1);
    for (const each of [cut.current, change]) if (each) live.toggle(each);
    cut.current = change;
  });
  if (!running.value)
    return problem.value ? (
      <small role="alert" data-live-why="problem">
        {problem.value}
      </small>
    ) : null;
  return (
    <p class="live-keep row wrap" data-live-why="running">
      Following the answer <progress value={progress.value} aria-label="How far it got" />
      <small>{percent(progress.value)}</small>
      <button class="quiet muted" data-why-cancel onClick={stop}>
        cancel
      </button>
    </p>
  );
}

function cutOf({ stack, layer, link: { head, query, key } }: WhyLine, several: boolean): ModelChange {
  return { do: "cut", layer, heads: [head], queries: [query], keys: [key], ...(several && { stack }) };
}
