import { useComputed } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { VIEWS_WITH } from "../../contract/values";
import { AllHeads } from "../../parts/AllHeads";
import { HeadCard } from "../../parts/HeadCard";
import { Loading } from "../../parts/Loading";
import type { ViewParts } from "../../parts/mount";
import { QuantityNote } from "../../parts/QuantityNote";
import { WordsNote } from "../../parts/WordsNote";
import type { View } from "../../state/selection";
import { CompareView } from "../compare/CompareView";
import { Written } from "../generation/Written";
import { HeadView } from "../head/HeadView";
import { LinksPanel } from "../links/LinksPanel";
import { MatrixView } from "../matrix/MatrixView";
import { ModelView } from "../model/ModelView";
import { NeuronView } from "../neuron/NeuronView";
import { OverviewView } from "../overview/OverviewView";
import { PairView } from "../pair/PairView";
import { ScatterView } from "../scatter/ScatterView";
import { TextView } from "../text/TextView";
import { Footer } from "./Footer";
import { Help } from "./Help";
import { Inspector } from "./Inspector";
import { Search } from "./Search";
import { SinkStrip } from "./SinkStrip";
import { Title } from "./Title";
import { Toolbar } from "./Toolbar";

const VIEWS: Readonly<Record<View, ComponentType<ViewParts>>> = {
  overview: OverviewView,
  head: HeadView,
  model: ModelView,
  matrix: MatrixView,
  text: TextView,
  neuron: NeuronView,
  pair: PairView,
  scatter: ScatterView,
  compare: CompareView,
};

const { wide: WIDE, alone: ALONE, tokens: OF_TOKENS } = VIEWS_WITH;

/** Height of what is said of a quantity. */
const NOTE = 56;

/** Height of what the model wrote. */
const WRITTEN = 108;

/** All views of a record, linked by one selection, with the map of all heads beside them; `children` under the title. */
export function App({ store, room, children }: ViewParts & { children?: ComponentChildren }) {
  const view = store.view.value;
  const { links, generation } = store.page;
  const tells = () => generation && ["overview", ...OF_TOKENS].includes(store.view.value);
  const high = useComputed(() => room.value - (tells() ? WRITTEN : 0));
  const left = useComputed(() => high.value - (store.quantity.value.name === "weight" ? 0 : NOTE));
  return (
    <>
      <button class="skip" onClick={skip}>
        Skip to the picture
      </button>
      <Title store={store} />
      {children}
      {store.searching.value && <Search store={store} />}
      <Toolbar store={store} />
      {generation && tells() && <Written store={store} written={generation} />}
      {view === "overview" ? (
        <section id="view" class="stage-bare" role="tabpanel" aria-label="overview view">
          <OverviewView store={store} room={high} />
          <WordsNote store={store} />
          <QuantityNote store={store} />
        </section>
      ) : (
        <Stage store={store} room={left} />
      )}
      {links && OF_TOKENS.includes(view) && <LinksPanel store={store} links={links} />}
      <Footer store={store} />
      <Loading store={store} />
      {store.help.value && <Help store={store} />}
      <p class="spoken" role="status" data-said>
        {store.said.value}
      </p>
    </>
  );
}

/** To the first token or head of the picture, past all buttons. */
function skip(event: Event): void {
  event.preventDefault();
  const root = (event.currentTarget as Element).closest("[data-headscope]");
  root?.querySelector<HTMLElement>('#view [tabindex="0"], #view button')?.focus();
}

/** One view in a card, with the map of all heads and the numbers of what is looked at beside it. */
function Stage({ store, room }: ViewParts) {
  const view = store.view.value;
  const View = VIEWS[view];
  return (
    <div
      class="body"
      data-view={view}
      data-wide={WIDE.includes(view) || undefined}
      data-alone={ALONE.includes(view) || undefined}
    >
      {!ALONE.includes(view) && <AllHeads store={store} />}
      <section class="card stage" id="view" role="tabpanel" aria-label={`${view} view`}>
        <SinkStrip store={store} />
        <View store={store} room={room} />
        <WordsNote store={store} />
        <QuantityNote store={store} />
      </section>
      {!WIDE.includes(view) && <Inspector store={store} />}
      {!ALONE.includes(view) && <HeadCard store={store} />}
    </div>
  );
}
