import { type ReadonlySignal, useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { usualDrawing } from "../../state/places";
import type { Store } from "../../state/store";
import { Picture } from "../head/Picture";
import { SentenceMap } from "../long/SentenceMap";
import { MatrixView } from "../matrix/MatrixView";
import { Headline } from "../one/Headline";
import { TextView } from "../text/TextView";

interface FullHeadProps {
  store: Store;
  /** Height that the picture may take. */
  room: ReadonlySignal<number>;
  children: ComponentChildren;
}

/** One head in full beside all: what it does, and its picture as the input asks for it. */
export function FullHead({ store, room, children }: FullHeadProps) {
  const drawing = useComputed(() => usualDrawing(store.stack.value));
  return (
    <section class="card full-head" aria-label="One head in full">
      <Headline store={store} />
      {drawing.value === "head" && <Picture store={store} room={room} received onDrawn={() => {}} />}
      {store.stack.value.sentences && <SentenceMap store={store} room={room} plain />}
      {drawing.value === "matrix" && !store.stack.value.sentences && <MatrixView store={store} room={room} plain />}
      {drawing.value === "text" && <TextView store={store} room={room} plain />}
      {children}
    </section>
  );
}
