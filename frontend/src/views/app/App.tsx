import { useComputed } from "@preact/signals";
import type { ComponentType } from "preact";
import { HeadCard } from "../../parts/HeadCard";
import { Loading } from "../../parts/Loading";
import type { ViewParts } from "../../parts/mount";
import { Overview } from "../../parts/Overview";
import { QuantityNote } from "../../parts/QuantityNote";
import type { View } from "../../state/selection";
import { HeadView } from "../head/HeadView";
import { LinksPanel } from "../links/LinksPanel";
import { MatrixView } from "../matrix/MatrixView";
import { ModelView } from "../model/ModelView";
import { NeuronView } from "../neuron/NeuronView";
import { PairView } from "../pair/PairView";
import { ScatterView } from "../scatter/ScatterView";
import { TextView } from "../text/TextView";
import { Footer } from "./Footer";
import { Inspector } from "./Inspector";
import { SinkStrip } from "./SinkStrip";
import { Title } from "./Title";
import { Toolbar } from "./Toolbar";

const VIEWS: Readonly<Record<View, ComponentType<ViewParts>>> = {
  head: HeadView,
  model: ModelView,
  matrix: MatrixView,
  text: TextView,
  neuron: NeuronView,
  pair: PairView,
  scatter: ScatterView,
};

/** Views that need the whole width: their numbers are in them. */
const WIDE: readonly View[] = ["model", "neuron", "scatter"];

/** Height of what is said of a quantity. */
const NOTE = 56;

/** All views of a record, linked by one selection, with the map of all heads beside them. */
export function App({ store, room }: ViewParts) {
  const view = store.view.value;
  const { links } = store.page;
  const View = VIEWS[view];
  const left = useComputed(() => room.value - (store.quantity.value.name === "weight" ? 0 : NOTE));
  return (
    <>
      <Title store={store} />
      <Toolbar store={store} />
      <div class="body" data-view={view} data-wide={WIDE.includes(view) || undefined}>
        {view !== "model" && <Overview store={store} />}
        <section class="card stage" id="view" role="tabpanel" aria-label={`${view} view`}>
          <SinkStrip store={store} />
          <View store={store} room={left} />
          <QuantityNote store={store} />
        </section>
        {!WIDE.includes(view) && <Inspector store={store} />}
        {view !== "model" && <HeadCard store={store} />}
      </div>
      {links && !["model", "scatter"].includes(view) && <LinksPanel store={store} links={links} />}
      <Footer store={store} />
      <Loading store={store} />
    </>
  );
}
