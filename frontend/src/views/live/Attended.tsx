import { Quiet } from "../../parts/controls";
import type { LiveParts } from "./LiveBar";

/** Why the pinned token attends to the pinned key, or else to the one with the largest weight: what wrote both. */
export function Attended({ live, store }: LiveParts) {
  const { running, problem, toldOf, start } = live.attended;
  const { query, key } = store.selection.value;
  const stack = store.pieceStack.value;
  if (query.length === 0) return null;
  const place = [store.layerNumber.value, stack.head_numbers[store.head.value], query[0], ...key.slice(0, 1)];
  const pair = { stack: stack.name, place };
  const html = toldOf(pair);
  return (
    <div class="attended" data-attended>
      <Quiet
        title="Which earlier heads, feed-forward parts and words wrote the query and the key of this pair"
        disabled={running.value || live.busy.value}
        onClick={() => void start(pair)}
      >
        why there?
      </Quiet>
      {problem.value && <small role="alert">{problem.value}</small>}
      {html && <div dangerouslySetInnerHTML={{ __html: html }} />}
    </div>
  );
}
