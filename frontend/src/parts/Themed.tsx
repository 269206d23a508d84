import { effect } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Shown, Store } from "../state/store";
import { Failure } from "./Failure";

/** The outermost element of a view: its colours, or what went wrong. */
export function Themed({ store, children }: { store: Store; children: ComponentChildren }) {
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
    heads: store.heads.value.map((head) => stack.head_numbers[head]).join(),
    ...extra,
  });
  if (root.dataset.ready) return;
  root.dataset.ready = "true";
  performance.mark("headscope:first-draw");
}
