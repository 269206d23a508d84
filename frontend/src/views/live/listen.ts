import type { Live } from "../../state/live";
import type { Store } from "../../state/store";
import { quickChange, subjectAt, subjectOf } from "../../state/subject";

/** Listens to clicks with Alt and to the key x, which change a head, a link or a token; gives what ends that. */
export function listenToChanges(bar: HTMLElement, store: Store, live: Live, keys: EventTarget): () => void {
  const root = bar.closest("[data-headscope]") ?? bar;
  const several = () => store.page.stacks.length > 1;
  const onClick = (event: Event) => {
    const { altKey, target } = event as MouseEvent;
    const subject = altKey && target instanceof Element ? subjectAt(target, store) : null;
    if (!subject) return;
    // Else the same click would also choose the head, or pin the token.
    event.preventDefault();
    event.stopPropagation();
    live.toggle(quickChange(subject, several()));
  };
  const onKey = (event: Event) => {
    const { key, ctrlKey, metaKey, altKey } = event as KeyboardEvent;
    const focused = (root.getRootNode() as ShadowRoot).activeElement;
    if (key !== "x" || ctrlKey || metaKey || altKey || isField(focused)) return;
    const at = focused && root.contains(focused) ? subjectAt(focused, store) : null;
    const subject = at ?? { ...subjectOf(store), query: null, key: null };
    // All heads of a layer at once is nothing that a single key should do.
    if (subject.heads === null) {
      live.said.value = "Choose one head first, then press x";
      return;
    }
    live.toggle(quickChange(subject, several()));
  };
  root.addEventListener("click", onClick, { capture: true });
  keys.addEventListener("keydown", onKey);
  return () => {
    root.removeEventListener("click", onClick, { capture: true });
    keys.removeEventListener("keydown", onKey);
  };
}

function isField(element: Element | null): boolean {
  return element !== null && ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);
}
