import type { ReadonlySignal } from "@preact/signals-core";
import { useEffect, useRef } from "preact/hooks";
import { readable } from "../../state/label";
import { togglePin } from "../../state/selection";
import type { Store } from "../../state/store";
import { queryShown } from "./table";

/** The queries, one of which is looked at. */
export function QueryList({ store, room }: { store: Store; room: ReadonlySignal<number> }) {
  const { query } = store.shownStack.value ?? store.stack.value;
  const pins = store.pins.value.query;
  const chosen = Math.min(query.labels.length - 1, queryShown(store));
  const root = useRef<HTMLDivElement>(null);
  const pinned = pins[0] ?? null;
  useEffect(() => {
    const option = pinned === null ? null : root.current?.querySelector<HTMLElement>(`[data-token="${pinned}"]`);
    if (root.current && option) bringIntoSight(root.current, option);
  }, [pinned]);
  const choose = (token: number, add: boolean) => store.select((now) => togglePin(now, { side: "query", token }, add));
  return (
    <div class="query-list">
      <small class="view-note" title="Shift-click stacks the rows of several queries">
        query
      </small>
      <div
        class="query-scroll"
        role="listbox"
        aria-label="Query tokens"
        aria-multiselectable="true"
        ref={root}
        style={{ maxHeight: `${Math.max(150, room.value)}px` }}
        onPointerLeave={() => store.preview({})}
        onKeyDown={(event) => moveOption(event)}
      >
        {query.labels.map((label, token) => {
          const { text, standIn } = readable(label);
          return (
            <div
              key={token}
              class="query-option"
              role="option"
              tabIndex={token === chosen ? 0 : -1}
              aria-selected={token === chosen || pins.includes(token)}
              data-side="query"
              data-token={token}
              data-special={query.special[token] || undefined}
              data-continues={query.continues[token] || undefined}
              data-stand-in={standIn || undefined}
              onPointerOver={() => store.preview({ query: token })}
              onFocus={() => store.preview({ query: token })}
              onClick={(event) => choose(token, event.shiftKey)}
              onKeyDown={(event) => {
                if (event.key === "Enter" || event.key === " ") {
                  event.preventDefault();
                  choose(token, event.shiftKey);
                }
              }}
            >
              <bdi class="label">{text}</bdi>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Scrolls a list, and only the list, as little as needed. */
function bringIntoSight(list: HTMLElement, { offsetTop, offsetHeight }: HTMLElement): void {
  const { scrollTop, clientHeight } = list;
  if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight) {
    list.scrollTop = offsetTop - clientHeight / 2;
  }
}

function moveOption(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const options = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-token]")];
  const at = options.indexOf(event.target as HTMLElement);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  options[Math.min(options.length - 1, Math.max(0, at + step))].focus();
}
