import { effect, type ReadonlySignal, signal } from "@preact/signals-core";
import { type ComponentType, render } from "preact";
import type { Source } from "../source/source";
import { type Selection, stepLayer } from "../state/selection";
import { createStore, type Store } from "../state/store";
import { Failure } from "./Failure";
import { Themed } from "./Themed";
import { type FollowTheme, followSystemTheme } from "./theme";

export interface ViewProps {
  source: Source;
  /** What differs from the page's own selection. */
  selection?: Partial<Selection>;
  /** Height in pixels that the picture may take before it scrolls. */
  height?: number;
  onSelection?: (selection: Selection) => void;
  /** Told whether the view is dark, at first and whenever that changes. */
  onDark?: (dark: boolean) => void;
  /** Where [ ] and Escape are listened to; the view itself where not given. */
  keys?: EventTarget;
  /** Who says whether it is dark around the view, until stopped; the system where not given. */
  followTheme?: FollowTheme;
}

export interface MountedView {
  update(props: Pick<ViewProps, "selection" | "height">): void;
  destroy(): void;
}

/** What every view is given. */
export interface ViewParts {
  store: Store;
  /** Height in pixels that the picture may take. */
  room: ReadonlySignal<number>;
}

const HEIGHT = 560;

/** Makes the `mount` of a view: into a shadow root of the element, with a state of its own. */
export function mounting(View: ComponentType<ViewParts>, styles: string) {
  return (element: HTMLElement, props: ViewProps): MountedView => {
    const root = styledRoot(element, styles);
    const store = createStore(props.source, props.selection);
    const room = signal(props.height ?? HEIGHT);
    const stopTheme = (props.followTheme ?? followSystemTheme)((dark) => {
      store.systemDark.value = dark;
    });
    const stopReport = effect(() => props.onSelection?.(store.selection.value));
    const stopDark = effect(() => props.onDark?.(store.dark.value));
    const keys = props.keys ?? root;
    const onKey = (event: Event) => viewKey(event as KeyboardEvent, store);
    keys.addEventListener("keydown", onKey);
    render(
      <Themed store={store}>
        <View store={store} room={room} />
      </Themed>,
      root,
    );
    return {
      update({ selection, height }) {
        if (height !== undefined) room.value = height;
        if (selection) store.select((now) => ({ ...now, ...selection }));
      },
      destroy() {
        render(null, root);
        keys.removeEventListener("keydown", onKey);
        stopReport();
        stopDark();
        stopTheme();
        store.destroy();
      },
    };
  };
}

/** Shows a message where a view would be. */
export function mountFailure(element: HTMLElement, error: unknown, styles: string): void {
  render(<Failure error={error} />, styledRoot(element, styles));
}

/** The keys that work anywhere in a view: [ and ] step through the layers, Escape clears. */
export function viewKey(event: KeyboardEvent, store: Store): void {
  // On many keyboards the brackets are typed with AltGr, which reads as Control and Alt.
  if (event.metaKey || (event.ctrlKey && !event.altKey)) return;
  if (event.key === "Escape") store.release();
  else if (event.key === "[") store.select((now) => stepLayer(now, -1, store.stack.value));
  else if (event.key === "]") store.select((now) => stepLayer(now, 1, store.stack.value));
}

/** A place inside a shadow root, where styles of the host page and ours do not meet. */
function styledRoot(element: HTMLElement, styles: string): HTMLElement {
  const shadow = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = styles;
  const root = document.createElement("div");
  root.className = "root";
  shadow.replaceChildren(style, root);
  return root;
}
