import { largest } from "../../draw/values";
import { pythonCall } from "../../state/call";
import type { Shown, Store } from "../../state/store";
import { bound } from "../../state/words";

/** The Python call that opens this picture, chosen by a click for copying, and how exact the page is. */
export function Footer({ store }: { store: Store }) {
  const { evidence, note, links, beside } = store.root;
  const { stacks } = store.page;
  const of = `${note === undefined ? "record" : "comparison"}${links ? ", links=links" : ""}${beside ? ", beside=beside" : ""}`;
  const call = pythonCall(store.selection.value, stacks.length > 1, evidence !== undefined, of);
  return (
    <footer class="python">
      <span>the same in Python</span>
      <code data-call>{call}</code>
      <small class="fine-print">{finePrint(store)}</small>
    </footer>
  );
}

function finePrint({ page, shown }: Store): string {
  const checked = page.checked ? [page.checked] : [];
  if (!shown.value) return checked.join();
  const { layer, quantity } = shown.value;
  const form = layer.weights ? "8-bit square roots" : `from ${layer.scores?.queries.dtype} q, k`;
  const further = quantity.name === "weight" ? [] : errorOf(shown.value);
  return [...checked, `error of a weight ≤ ${bound(layer.error)} (${form})`, ...further].join(" · ");
}

/** How exact another quantity is: a byte has 255 steps to the largest size, with a sign 127. */
function errorOf({ layer, quantity, valueNorms }: Shown): string[] {
  const array = layer.quantities?.[quantity.name];
  const step = array?.encoding === "signed" ? 127 : 255;
  const most = array
    ? (array.most ?? 1) / step
    : quantity.name === "score"
      ? null
      : layer.error * largest(valueNorms ?? []);
  return most === null ? [] : [`of ${quantity.label} ≤ ${bound(most)}`];
}
