import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { CHANGE_WORDS, keyOfChange } from "../../state/changes";
import type { Live } from "../../state/live";
import type { Store } from "../../state/store";
import { changeOf, subjectOf } from "../../state/subject";

/** The model whose heads a view shows; null where none answers. */
export const LiveContext = /* @__PURE__ */ createContext<Live | null>(null);

const KINDS = ["zero", "uniform"] as const;

/** Changes of the head that a card shows, each a switch. */
export function HeadChanges({ store }: { store: Store }) {
  const live = useContext(LiveContext);
  const subject = { ...subjectOf(store), query: null, key: null };
  if (live === null || subject.heads === null) return null;
  return KINDS.map((kind) => {
    const change = changeOf(kind, subject, { several: store.page.stacks.length > 1 });
    const isOn = live.asked.value.changes.some((other) => keyOfChange(other) === keyOfChange(change));
    return (
      <button
        key={kind}
        class="quiet live-head"
        data-head-do={kind}
        aria-pressed={isOn}
        title={`${CHANGE_WORDS[kind][1]}${kind === "zero" ? " (x)" : ""}; more in the bar above`}
        onClick={() => live.toggle(change)}
      >
        {CHANGE_WORDS[kind][0]}
      </button>
    );
  });
}
