import { effect, type ReadonlySignal, signal } from "@preact/signals-core";
import { type ComponentType, render } from "preact";
import type { Source } from "../source/source";
import type { Selection } from "../state/selection";
import { createStore, type Store } from "../state/store";
import { Failure } from "./Failure";
import { viewKey } from "./keyboard";
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
  /** What Ctrl-Z does: back to the step before, or forward again; the view's own steps where not given. */
  undo?: (forward: boolean) => void;
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
  /** Without what chooses and explains: it stands beside others, or small. */
  plain?: boolean;
}

const HEIGHT = 560;

/** Makes the `mount` of a view: into a shadow root of the element, with a state of its own. */
export function mounting(View: ComponentType<ViewParts>, styles: string) {
  return (element: HTMLElement, props: ViewProps): MountedView => {
    const root = styledRoot(element, styles);
    const room = signal(props.height ?? HEIGHT);
    const steps = { past: [], ahead: [] };
    let shown = show(props.source, props.selection);
    /** Shows one record of the page; another one has a state of its own. */
    function show(source: Source, selection?: Partial<Selection>) {
      const store = createStore(source, selection, undefined, steps);
      const stopTheme = (props.followTheme ?? followSystemTheme)((dark) => {
        store.systemDark.value = dark;
      });
      const stops = [
        stopTheme,
        effect(() => props.onSelection?.(store.selection.value)),
        effect(() => props.onDark?.(store.dark.value)),
        effect(() => {
          const other = store.elsewhere.value;
          if (other) queueMicrotask(() => showOther(other));
        }),
        store.destroy,
      ];
      render(
        <Themed store={store} key={store.record}>
          <View store={store} room={room} />
        </Themed>,
        root,
      );
      return { store, stop: () => stops.forEach((stop) => void stop()) };
    }
    const showOther = (selection: Selection) => {
      if (shown.store.elsewhere.peek() !== selection) return;
      shown.stop();
      shown = show(shown.store.origin.peek().given, selection);
    };
    const paper = matchMedia("print");
    const onPaper = () => {
      shown.store.printing.value = paper.matches;
    };
    paper.addEventListener("change", onPaper);
    const keys = props.keys ?? root;
    const onKey = (event: Event) => viewKey(event as KeyboardEvent, shown.store, props.undo);
    keys.addEventListener("keydown", onKey);
    return {
      update({ selection, height }) {
        if (height !== undefined) room.value = height;
        if (selection) shown.store.select((now) => ({ ...now, ...selection }));
      },
      destroy() {
        render(null, root);
        keys.removeEventListener("keydown", onKey);
        paper.removeEventListener("change", onPaper);
        shown.stop();
      },
    };
  };
}

/** Shows a message where a view would be. */
export function mountFailure(element: HTMLElement, error: unknown, styles: string): void {
  render(<Failure error={error} />, styledRoot(element, styles));
}

/** Says something where a view will be. */
export function mountMessage(element: HTMLElement, text: string, styles: string): void {
  render(
    <div class="failure" role="status" data-message>
      <strong>{text}</strong>
    </div>,
    styledRoot(element, styles),
  );
}

interface ChoosingProps {
  chosen: boolean;
  onChoose: (chosen: string) => void;
  onProblem: (problem: string) => void;
}

/** Asks for what a view cannot begin without. */
export function mountChoice<Props extends object>(
  element: HTMLElement,
  Field: ComponentType<Props & ChoosingProps>,
  props: Props,
  styles: string,
): Promise<string> {
  const root = styledRoot(element, styles);
  return new Promise((resolve) => {
    const show = (problem: string) =>
      render(
        <div class="failure">
          <Field {...props} chosen={false} onChoose={resolve} onProblem={show} />
          <p role="alert">{problem}</p>
        </div>,
        root,
      );
    show("");
  });
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
