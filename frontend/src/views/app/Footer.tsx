import { useSignal } from "@preact/signals";
import { pythonCall } from "../../state/call";
import type { Store } from "../../state/store";
import { bound, magnitude } from "../../state/words";

/** The Python call that opens this picture, for copying, and how exact the page is. */
export function Footer({ store }: { store: Store }) {
  const said = useSignal("");
  const call = pythonCall(store.selection.value, store.page.stacks.length > 1, store.page.evidence !== undefined);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(call);
      said.value = "copied";
    } catch {
      // Frames and files may not write to the clipboard; the text can be selected.
      said.value = "select and copy the text";
    }
  };
  return (
    <footer class="python">
      <span>the same in Python</span>
      <code data-call>{call}</code>
      <button
        type="button"
        class="quiet"
        onClick={copy}
        onBlur={() => {
          said.value = "";
        }}
      >
        copy
      </button>
      <small aria-live="polite">{said.value}</small>
      <small class="fine-print">{finePrint(store)}</small>
    </footer>
  );
}

function finePrint({ page, shown }: Store): string {
  const checked = page.verified === null ? [] : [`checked against the model: ${magnitude(page.verified)}`];
  const layer = shown.value?.layer;
  if (!layer) return checked.join();
  const form = layer.weights ? "8-bit square roots" : "from float16 q, k";
  return [...checked, `error of a weight ≤ ${bound(layer.error)} (${form})`].join(" · ");
}
