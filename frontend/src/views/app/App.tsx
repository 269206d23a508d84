import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { VIEWS_WITH } from "../../contract/values";
import { Loading } from "../../parts/Loading";
import type { ViewParts } from "../../parts/mount";
import { QuantityNote } from "../../parts/QuantityNote";
import { WordsNote } from "../../parts/WordsNote";
import { CompareView } from "../compare/CompareView";
import { Written } from "../generation/Written";
import { LinksPanel } from "../links/LinksPanel";
import { OneHead } from "../one/OneHead";
import { OverviewView } from "../overview/OverviewView";
import { Story } from "../overview/Story";
import { Footer } from "./Footer";
import { Help } from "./Help";
import { Poster } from "./Poster";
import { Search } from "./Search";
import { Title } from "./Title";

/** Height of what is said of a quantity. */
const NOTE = 56;

/** Height of what the model wrote. */
const WRITTEN = 108;

/** The three places of a record, linked by one selection; `children` in a column at the left. */
export function App({ store, room, children }: ViewParts & { children?: ComponentChildren }) {
  const view = store.view.value;
  const { links, generation } = store.page;
  const tells = () => generation && store.view.value !== "compare";
  const high = useComputed(() => room.value - (tells() ? WRITTEN : 0));
  const left = useComputed(() => high.value - (store.quantity.value.name === "weight" ? 0 : NOTE));
  return (
    <>
      <button class="skip" onClick={skip}>
        Skip to the picture
      </button>
      <Title store={store} />
      {store.stack.value.kinds && <Story store={store} />}
      {store.searching.value && <Search store={store} />}
      {generation && tells() && <Written store={store} written={generation} />}
      <div class={children ? "with-live" : undefined}>
        {children}
        <div>
          {view === "overview" && (
            <section id="view" class="stage-bare" role="tabpanel" aria-label="All heads">
              <OverviewView store={store} room={high} />
              <WordsNote store={store} />
              <QuantityNote store={store} />
            </section>
          )}
          {view === "compare" && (
            <section id="view" class="card stage" role="tabpanel" aria-label="Compare">
              <CompareView store={store} room={left} />
            </section>
          )}
          {view !== "overview" && view !== "compare" && <OneHead store={store} room={left} />}
        </div>
      </div>
      {links && VIEWS_WITH.tokens.includes(view) && <LinksPanel store={store} links={links} />}
      <Footer store={store} />
      <Loading store={store} />
      {store.help.value && <Help store={store} />}
      {store.poster.value && <Poster store={store} />}
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
