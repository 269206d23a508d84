import { useSignal } from "@preact/signals";
import { VIEW_HINTS } from "../../contract/values";
import type { Store } from "../../state/store";

const KEPT = "headscope-hints-seen";

/** What a first visitor can do in this view, until dismissed. */
export function Hint({ store }: { store: Store }) {
  const seen = useSignal(seenBefore());
  if (seen.value) return null;
  return (
    <p class="hint-bar" data-hint>
      <span>
        {VIEW_HINTS[store.view.value]}
        <span class="hint-key">
          {" "}
          Press <kbd>?</kbd> for all else.
        </span>
      </span>
      <button
        class="quiet"
        data-hint-close
        onClick={() => {
          seen.value = true;
          remember();
        }}
      >
        got it
      </button>
    </p>
  );
}

/** Where nothing can be kept, as in sandboxed frames, hints would come again and again: there are none. */
function seenBefore(): boolean {
  try {
    return localStorage.getItem(KEPT) !== null;
  } catch {
    return true;
  }
}

function remember(): void {
  try {
    localStorage.setItem(KEPT, "1");
  } catch {
    // The browser keeps nothing: the hint is gone for as long as the page is open.
  }
}
