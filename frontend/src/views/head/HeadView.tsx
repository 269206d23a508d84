import { type Signal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Failure } from "../../parts/Failure";
import type { Shown, Store } from "../../state/store";
import { Inspector } from "./Inspector";
import { viewKey } from "./keyboard";
import { Picture } from "./Picture";
import { SinkNote } from "./Summary";
import { Title } from "./Title";
import { Toolbar } from "./Toolbar";

interface HeadViewProps {
  store: Store;
  room: Signal<number>;
  /** Where the keys of the view are listened to, when that is not the view itself. */
  ownKeys: boolean;
}

/** The attention of one layer: lines from query to key, colour = head, strength = weight. */
export function HeadView({ store, room, ownKeys }: HeadViewProps) {
  const root = useRef<HTMLElement>(null);
  useSignalEffect(() => {
    const theme = store.dark.value ? "dark" : "light";
    root.current?.setAttribute("data-theme", theme);
    const host = (root.current?.getRootNode() as ShadowRoot | undefined)?.host;
    host?.setAttribute("data-theme", theme);
  });
  if (store.failure.value !== null) return <Failure error={store.failure.value} />;
  return (
    <main
      class="headscope"
      ref={root}
      data-headscope
      onKeyDown={ownKeys ? (event) => viewKey(event, store) : undefined}
    >
      <Title store={store} />
      <Toolbar store={store} />
      <div class="body">
        <section class="card stage" aria-label="Attention lines">
          <Picture store={store} room={room} onDrawn={(shown) => reportDrawn(root.current, store, shown)} />
          <SinkNote store={store} />
        </section>
        <Inspector store={store} />
      </div>
    </main>
  );
}

/** Tells tests and measurements what is on the canvas. */
function reportDrawn(root: HTMLElement | null, store: Store, { stack, layer }: Shown): void {
  if (!root) return;
  root.dataset.stack = stack.name;
  root.dataset.layer = String(layer.layer);
  root.dataset.heads = store.heads.value.join();
  root.dataset.lines = String(store.summary.value.lines);
  if (root.dataset.ready) return;
  root.dataset.ready = "true";
  performance.mark("headscope:first-draw");
}
