import { keepHead, stepLayer } from "../state/selection";
import { compareClearest, freeze, type Store } from "../state/store";

/** The keys that work anywhere but where something is written. */
const KEYS: Readonly<Record<string, (store: Store) => void>> = {
  "[": (store) => step(store, -1),
  "]": (store) => step(store, 1),
  "?": (store) => {
    store.help.value = !store.help.value;
  },
  "/": (store) => {
    store.searching.value = !store.searching.value;
  },
  o: (store) => store.choose({ view: "overview" }),
  a: (store) => store.view.value !== "compare" && freeze(store),
  c: compareClearest,
  f: (store) => {
    store.poster.value = !store.poster.value;
  },
  w: (store) => store.hasPieces.value && store.choose({ words: !store.selection.value.words }),
};

/**
 * The keyboard of a view: [ and ] step through the layers, o opens the overview, a adds to compare, c compares,
 * f shows a poster of all, w joins words, ? shows the help, / finds a token, Escape unpins, Ctrl-Z undoes.
 */
export function viewKey(event: KeyboardEvent, store: Store, undo: (forward: boolean) => void = store.undo): void {
  const { key, ctrlKey, metaKey, altKey } = event;
  // On many keyboards the brackets are typed with AltGr, which reads as Control and Alt.
  const command = metaKey || (ctrlKey && !altKey);
  if (command && key.toLowerCase() === "z" && !isTyping(event)) {
    // A notebook around the view would undo something of its own.
    event.preventDefault();
    event.stopPropagation();
    undo(event.shiftKey);
  }
  if (command) return;
  if (key === "Escape") store.release();
  else if (Object.hasOwn(KEYS, key) && ("[]".includes(key) || !(ctrlKey || isTyping(event)))) {
    // A browser may have a search of its own under the slash.
    if (key === "/") event.preventDefault();
    KEYS[key](store);
  }
}

/** The same head of another layer. */
function step(store: Store, by: number): void {
  store.select((now) => stepLayer(keepHead(now, store.full.value, store.stack.value), by, store.stack.value));
}

/** Whether a key goes into a field or a menu: a letter there is no command. */
function isTyping({ target }: KeyboardEvent): boolean {
  const path = target instanceof Element ? (target.shadowRoot?.activeElement ?? target) : null;
  return path instanceof HTMLInputElement || path instanceof HTMLSelectElement || isEditable(path);
}

function isEditable(element: Element | null): boolean {
  return element instanceof HTMLTextAreaElement || (element instanceof HTMLElement && element.isContentEditable);
}
