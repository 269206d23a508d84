import type { ReadonlySignal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { kindColor } from "../../draw/kinds";
import { KindIcon } from "../../parts/KindIcon";
import { QuantityChoice } from "../../parts/QuantityChoice";
import { headName, headWords as labelWords } from "../../state/evidence";
import { headWords, kindOf } from "../../state/kinds";
import type { Store } from "../../state/store";
import { FreezeButton } from "../app/Toolbar";
import { Picture } from "../head/Picture";
import { HeadChanges } from "../live/HeadChanges";
import { Numbers } from "./Numbers";

interface FullHeadProps {
  store: Store;
  /** Height that the picture may take. */
  room: ReadonlySignal<number>;
  children: ComponentChildren;
}

/** One head in full: what it does with its number, its lines, and its ten numbers among all heads. */
export function FullHead({ store, room, children }: FullHeadProps) {
  return (
    <section class="card full-head" aria-label="One head in full">
      <Headline store={store} />
      <Picture store={store} room={room} received onDrawn={() => {}} />
      <Numbers store={store} />
      {children}
    </section>
  );
}

/** Scores are for the head view: here only what a record has beside them can be chosen, and weights again. */
function hasChoice({ quantities, quantity }: Store): boolean {
  return quantities.value.length > 2 || quantity.value.name !== "weight";
}

function Headline({ store }: { store: Store }) {
  const { full, kinds, evidence, stack, dark } = store;
  const at = full.value ?? 0;
  const known = kinds.value;
  const kind = known && kindOf(known, at);
  const words = known ? headWords(known, at) : { does: "", more: "" };
  const labels = evidence.value ? labelWords(evidence.value, at) : "";
  const more = `${words.more}${kind ? ", on this text" : ""}${labels && ` · over many texts: ${labels}`}`;
  return (
    <div class="headline" style={{ "--kind": kind ? kindColor(kind, dark.value) : undefined }}>
      <h2 data-headline>
        {kind && <KindIcon kind={kind} />}
        Head {headName({ stack: stack.value }, at)} <span>{words.does}</span>
      </h2>
      <div class="headline-tools">
        {hasChoice(store) && <QuantityChoice store={store} />}
        {OF_MODEL && <HeadChanges store={store} />}
        <FreezeButton store={store} />
      </div>
      <p data-more title={more}>
        {more}
      </p>
    </div>
  );
}
