import { effect, type ReadonlySignal, signal } from "@preact/signals-core";
import { type ComponentChildren, type ComponentType, render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { messageOf, PageError, type Source, type WidgetModel } from "../source/source";
import { keepHead, type Selection, stepLayer } from "../state/selection";
import { compareClearest, createStore, freeze, type Shown, type Store } from "../state/store";
import { styles } from "../styles/packed";
import { type FollowTheme, followHostTheme, followSystemTheme, styledRoot } from "./theme";

interface ViewProps {
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

export type MountedView = ReturnType<ReturnType<typeof mounting>>;

/** What every view is given. */
export interface ViewParts {
  store: Store;
  /** Height in pixels that the picture may take. */
  room: ReadonlySignal<number>;
  /** Without what chooses and explains: it stands beside others, or small. */
  plain?: boolean;
  /** Which names stand at a matrix: all where not given, those of rows, or none. */
  names?: "rows" | "none" | undefined;
}

const HEIGHT = 560;

/** Makes the `mount` of a view: into a shadow root of the element, with a state of its own. */
export function mounting(View: ComponentType<ViewParts>) {
  return (element: HTMLElement, props: ViewProps) => {
    const root = styledRoot(element, styles);
    const room = signal(props.height ?? HEIGHT);
    const steps = { past: [], ahead: [] };
    let shown = show(props.source, props.selection);
    /** Shows one record of the page; another one has a state of its own. */
    function show(source: Source, selection?: Partial<Selection>) {
      const store = createStore(source, selection, undefined, steps);
      const stopTheme = (props.followTheme ?? followSystemTheme)((dark) => (store.systemDark.value = dark));
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
    const onPaper = () => (shown.store.printing.value = paper.matches);
    paper.addEventListener("change", onPaper);
    const keys = props.keys ?? root;
    const onKey = (event: Event) => viewKey(event as KeyboardEvent, shown.store, props.undo);
    keys.addEventListener("keydown", onKey);
    return {
      update({ selection, height }: Pick<ViewProps, "selection" | "height">): void {
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

/** Height of a picture in the output of a notebook. */
const NOTEBOOK_HEIGHT = 440;

/** A view in the output of a notebook, whose selection is a traitlet, at first known as this text; gives what ends it. */
export function mountWidget(
  mount: ReturnType<typeof mounting>,
  place: HTMLElement,
  model: WidgetModel,
  given: Pick<ViewProps, "source" | "selection">,
  known = "",
): () => void {
  let shown = known;
  const isNew = (selection: Partial<Selection>) => {
    const [before, now] = [shown, JSON.stringify(selection)];
    shown = now;
    return now !== before;
  };
  const onSelection = (selection: Selection) => {
    if (!isNew(selection)) return;
    model.set("selection", selection);
    model.save_changes();
  };
  const view = mount(place, { ...given, height: NOTEBOOK_HEIGHT, followTheme: followHostTheme, onSelection });
  const onChange = () => {
    const selection = model.get("selection") as Partial<Selection>;
    if (isNew(selection)) view.update({ selection });
  };
  model.on("change:selection", onChange);
  return () => {
    model.off("change:selection", onChange);
    view.destroy();
  };
}

/** A place for a view in the output of a notebook, which has keys of its own and scrolls on keys and wheel. */
export function placeIn(output: HTMLElement): HTMLElement {
  const place = output.ownerDocument.createElement("div");
  output.append(place);
  for (const event of ["keydown", "wheel"]) place.addEventListener(event, (heard) => heard.stopPropagation());
  return place;
}

/** Shows a message where a view would be. */
export function mountFailure(element: HTMLElement, error: unknown): void {
  render(<Failure error={error} />, styledRoot(element, styles));
}

/** Says something where a view will be. */
export function mountMessage(element: HTMLElement, text: string): void {
  render(
    <div class="failure" role="status" data-message>
      <strong>{text}</strong>
    </div>,
    styledRoot(element, styles),
  );
}

type ChoosingProps = { chosen: boolean; onChoose: (chosen: string) => void; onProblem: (problem: string) => void };

/** Asks for what a view cannot begin without. */
export function mountChoice<Props extends object>(
  element: HTMLElement,
  Field: ComponentType<Props & ChoosingProps>,
  props: Props,
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

/** The keys that work anywhere but where something is written. */
const KEYS: Readonly<Record<string, (store: Store) => void>> = {
  "[": (store) => step(store, -1),
  "]": (store) => step(store, 1),
  "?": (store) => (store.help.value = !store.help.value),
  "/": (store) => (store.searching.value = !store.searching.value),
  o: (store) => store.choose({ view: "overview" }),
  a: (store) => store.view.value !== "compare" && freeze(store),
  c: compareClearest,
  f: (store) => (store.show.value = "poster"),
  p: (store) => (store.show.value = "film"),
  w: (store) => store.hasPieces.value && store.choose({ words: !store.selection.value.words }),
};

/**
 * The keyboard of a view: [ and ] step through the layers, o opens the overview, a adds to compare, c compares,
 * f shows a poster of all, p a film through the layers, w joins words, ? shows the help, / finds a token, Escape unpins, Ctrl-Z undoes.
 */
function viewKey(event: KeyboardEvent, store: Store, undo: (forward: boolean) => void = store.undo): void {
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
export function isTyping({ target }: Event): boolean {
  const path = target instanceof Element ? (target.shadowRoot?.activeElement ?? target) : null;
  const isEditable = path instanceof HTMLElement && path.isContentEditable;
  return isEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(path?.tagName ?? "");
}

/** What the reader sees instead of a picture when the page is broken. */
function Failure({ error }: { error: unknown }) {
  return (
    <div class="failure" role="alert" data-failure>
      <strong>This page cannot be shown.</strong>
      <p>{error instanceof PageError ? error.message : `Something went wrong in the viewer: ${messageOf(error)}`}</p>
    </div>
  );
}

/** The outermost element of a view: its colours, or what went wrong. */
function Themed({ store, children }: { store: Store; children: ComponentChildren }) {
  const root = useRef<HTMLElement>(null);
  // Before the first frame, which would be white otherwise.
  useLayoutEffect(
    () =>
      effect(() => {
        const theme = store.dark.value ? "dark" : "light";
        root.current?.setAttribute("data-theme", theme);
        const host = (root.current?.getRootNode() as ShadowRoot | undefined)?.host;
        host?.setAttribute("data-theme", theme);
      }),
    [store],
  );
  if (store.failure.value !== null) return <Failure error={store.failure.value} />;
  return (
    <main class="headscope" ref={root} data-headscope>
      {children}
    </main>
  );
}

/** Tells tests and measurements what a view has drawn. */
export function reportDrawn(
  inside: Element | null,
  store: Store,
  { stack, layer }: Shown,
  extra: Readonly<Record<string, string>> = {},
): void {
  const root = inside?.closest<HTMLElement>("[data-headscope]");
  if (!root) return;
  // A picture of the tray says what it shows itself; the page shows several.
  const picture = inside?.closest<HTMLElement>("[data-picture]");
  if (picture) root.dataset.view = "compare";
  Object.assign((picture ?? root).dataset, {
    view: store.view.value,
    quantity: store.quantity.value.name,
    stack: stack.name,
    layer: String(layer.layer),
    heads: String(stack.head_numbers[store.head.value]),
    ...extra,
  });
  reportReady(root);
}

/** Tells them once that there is something. */
export function reportReady(root: HTMLElement): void {
  if (root.dataset.ready) return;
  root.dataset.ready = "true";
  performance.mark("headscope:first-draw");
}
