import { effect, signal } from "@preact/signals-core";
import { render } from "preact";
import { Failure } from "../../parts/Failure";
import type { Source } from "../../source/source";
import type { Selection } from "../../state/selection";
import { createStore } from "../../state/store";
import { HeadView } from "./HeadView";
import { viewKey } from "./keyboard";
import { styles } from "./styles";

export interface HeadViewProps {
  source: Source;
  /** What differs from the page's own selection. */
  selection?: Partial<Selection>;
  /** Height in pixels that the picture may take before it scrolls. */
  height?: number;
  onSelection?: (selection: Selection) => void;
  /** Where [ ] and Escape are listened to; the view itself where not given. */
  keys?: EventTarget;
}

export interface View {
  update(props: Pick<HeadViewProps, "selection" | "height">): void;
  destroy(): void;
}

const HEIGHT = 560;

export function mountHeadView(element: HTMLElement, props: HeadViewProps): View {
  const root = styledRoot(element);
  const store = createStore(props.source, props.selection);
  const room = signal(props.height ?? HEIGHT);
  const stopTheme = followSystemTheme((dark) => {
    store.systemDark.value = dark;
  });
  const stopReport = effect(() => props.onSelection?.(store.selection.value));
  const onKey = (event: Event) => viewKey(event as KeyboardEvent, store);
  props.keys?.addEventListener("keydown", onKey);
  render(<HeadView store={store} room={room} ownKeys={!props.keys} />, root);
  return {
    update({ selection, height }) {
      if (height !== undefined) room.value = height;
      if (selection) store.select((now) => ({ ...now, ...selection }));
    },
    destroy() {
      render(null, root);
      props.keys?.removeEventListener("keydown", onKey);
      stopReport();
      stopTheme();
      store.destroy();
    },
  };
}

/** Shows a message where the view would be. */
export function mountFailure(element: HTMLElement, error: unknown): void {
  render(<Failure error={error} />, styledRoot(element));
}

/** A place inside a shadow root, where styles of the host page and ours do not meet. */
function styledRoot(element: HTMLElement): HTMLElement {
  const shadow = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = styles;
  const root = document.createElement("div");
  root.className = "root";
  shadow.replaceChildren(style, root);
  return root;
}

function followSystemTheme(report: (dark: boolean) => void): () => void {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => report(query.matches);
  tell();
  query.addEventListener("change", tell);
  return () => query.removeEventListener("change", tell);
}
