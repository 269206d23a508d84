import { useSignal } from "@preact/signals";
import type { View } from "../../state/selection";
import type { Store } from "../../state/store";

const HINTS: Readonly<Record<View, string>> = {
  overview: "Each square is one head. Point at one to see it in full, click to keep it, double-click to open it.",
  head: "Point at a token to follow its attention, click to pin it.",
  model: "Each picture is one head of one layer. Click one to open it.",
  matrix: "A row is the token that looks, a column the token that is looked at. Point at a cell for its words.",
  text: "The stronger a word’s colour, the more attention it gets. Click a word to see where it looks.",
  neuron: "Choose a query: each key’s score is a sum over the neurons of the head.",
  pair: "One query and one key in every head of every layer.",
  compare: "Frozen pictures, side by side. Arrows go from one to the next, with Shift they move it, Delete removes it.",
  scatter: "Each dot is one head. Point at it for its numbers, click to open it.",
};

const KEPT = "headscope-hints-seen";

/** What a first visitor can do in this view, until dismissed. */
export function Hint({ store }: { store: Store }) {
  const seen = useSignal(seenBefore());
  if (seen.value) return null;
  return (
    <p class="hint-bar" data-hint>
      <span>
        {HINTS[store.view.value]}
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
