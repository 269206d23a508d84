import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Place, Side } from "../../draw/place";
import type { Store } from "../../state/store";
import { counted } from "../../state/words";

/** A field that finds a token and pins it. */
export function Search({ store }: { store: Store }) {
  const field = useRef<HTMLInputElement>(null);
  const text = useSignal("");
  const at = useSignal(-1);
  useEffect(() => field.current?.focus(), []);
  const found = matches(store, text.value);
  const pin = (step: number) => {
    if (found.length === 0) return;
    at.value = (at.value + step + found.length) % found.length;
    const { side, token } = found[at.value];
    const piece = store.pieceAt({ side, token });
    store.choose({ query: [], key: [], [side]: [piece] });
  };
  const close = () => {
    store.searching.value = false;
  };
  return (
    <search class="search">
      <input
        ref={field}
        type="search"
        data-search
        aria-label="Find a token"
        placeholder="find a token"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = -1;
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") pin(event.shiftKey ? -1 : 1);
          else if (event.key !== "Escape") return;
          else close();
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <small role="status" data-search-said>
        {text.value && (at.value < 0 ? counted(found.length, "token") : `${at.value + 1} of ${found.length}`)}
      </small>
      <button class="quiet" onClick={close}>
        close
      </button>
    </search>
  );
}

/** The tokens with this text in them: those that look, and those that are looked at where these are others. */
function matches({ stack }: Store, text: string): Place[] {
  const wanted = text.trim().toLowerCase();
  const { query, key } = stack.value;
  const same = query.labels.join("\n") === key.labels.join("\n");
  const of = (side: Side, labels: readonly string[]) =>
    labels.flatMap((label, token) => (wanted && label.toLowerCase().includes(wanted) ? [{ side, token }] : []));
  return [...of("query", query.labels), ...(same ? [] : of("key", key.labels))];
}
