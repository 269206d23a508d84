import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { VIEWS_WITH } from "../../../contract/values";
import type { WhyPicture } from "../../../types/why";
import type { KindName } from "../../draw/kinds";
import { isPicture } from "../../draw/patches";
import type { Place, Side } from "../../draw/tokens";
import { largest } from "../../draw/values";
import { Quiet } from "../../parts/controls";
import { Clauses } from "../../parts/legend";
import { reportReady, type ViewParts } from "../../parts/mount";
import { QuantityNote, WordsNote } from "../../parts/notes";
import { pythonCall } from "../../state/call";
import { clausesOf, headsByKind } from "../../state/kinds";
import { chooseStack, findStack, isDrawing, keepHead, usualDrawing } from "../../state/selection";
import type { Shown, Store } from "../../state/store";
import { bound, count, counted } from "../../state/words";
import { CompareView } from "../compare/CompareView";
import { Written } from "../generation/Written";
import { LinksPanel } from "../links/LinksPanel";
import { OneHead } from "../one/OneHead";
import { OverviewView } from "../overview/OverviewView";
import { WhyView } from "../why/WhyView";
import { Help } from "./Help";
import { Show } from "./Show";
import { Title } from "./Title";

/** Height of what is said of a quantity. */
const NOTE = 56;

/** Height of what the model wrote. */
const WRITTEN = 108;

/** The three places of a record, linked by one selection; `children` in a column at the left. */
export function App({ store, room, children }: ViewParts & { children?: ComponentChildren }) {
  const view = store.view.value;
  const [picture, inWhy] = [store.why.value, store.inWhy.value];
  const { links, generation } = store.page;
  const tells = () => generation && store.view.value !== "compare";
  const high = useComputed(() => room.value - (tells() ? WRITTEN : 0));
  const left = useComputed(() => high.value - (store.quantity.value.name === "weight" ? 0 : NOTE));
  return (
    <>
      <button class="skip boxed" onClick={skip}>
        Skip to the picture
      </button>
      <Title store={store} />
      {store.stack.value.kinds && <Story store={store} />}
      {store.searching.value && <Search store={store} />}
      {generation && tells() && <Written store={store} written={generation} />}
      <div class={children ? "with-live stack top" : undefined}>
        {children}
        <div>
          {inWhy && picture && <WhyPlace store={store} picture={picture} />}
          {view === "overview" && !inWhy && (
            <section id="view" class="stage-bare" role="tabpanel" aria-label="All heads">
              <OverviewView store={store} room={high} />
              <WordsNote store={store} />
              <QuantityNote store={store} />
            </section>
          )}
          {view === "compare" && !inWhy && (
            <section id="view" class="card stage slim" role="tabpanel" aria-label="Compare">
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
      {store.show.value && <Show key={store.show.value} store={store} film={store.show.value === "film"} />}
      <p class="spoken" role="status" data-said>
        {store.said.value}
      </p>
    </>
  );
}

/** Why a word was said; the head of a pinned line is below, pinned on its two tokens. */
function WhyPlace({ store, picture }: { store: Store; picture: WhyPicture }) {
  const { line, page, select, view } = store;
  const shown = isDrawing(view.value);
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    const root = place.current?.closest<HTMLElement>("[data-headscope]");
    if (root) reportReady(root);
  }, []);
  useSignalEffect(() => {
    if (!line.value) return;
    const { stack, layer, link } = line.value;
    const { head, query, key } = link;
    select((now) => {
      const of = page.stacks.length > 1 ? chooseStack(now, stack, page) : now;
      const drawing = usualDrawing(findStack(page, of.stack));
      return {
        ...of,
        layer,
        heads: [head],
        query: [query],
        key: [key],
        view: isDrawing(now.view) ? now.view : drawing,
      };
    });
  });
  return (
    <section ref={place} id={shown ? "why" : "view"} role="tabpanel" aria-label="Why this word" data-why-place>
      <WhyView key={picture.title} picture={picture} dark={store.dark.value} pinned={line}>
        <h2>{picture.title}</h2>
      </WhyView>
    </section>
  );
}

/** To the first token or head of the picture, past all buttons. */
function skip(event: Event): void {
  event.preventDefault();
  const root = (event.currentTarget as Element).closest("[data-headscope]");
  root?.querySelector<HTMLElement>('#view [tabindex="0"], #view button')?.focus();
}

/** The Python call that opens this picture, chosen by a click for copying, and how exact the page is. */
function Footer({ store }: { store: Store }) {
  const { evidence, note, links, beside } = store.root;
  const { stacks } = store.page;
  const of = `${note === undefined ? "record" : "comparison"}${links ? ", links=links" : ""}${beside ? ", beside=beside" : ""}`;
  const call = pythonCall(store.selection.value, stacks.length > 1, evidence !== undefined, of);
  return (
    <footer class="python row wrap muted">
      <span>the same in Python</span>
      <code data-call>{call}</code>
      <small class="fine-print">{finePrint(store)}</small>
    </footer>
  );
}

function finePrint({ page, shown }: Store): string {
  const checked = page.checked ? [page.checked] : [];
  if (!shown.value) return checked.join();
  const { layer, quantity } = shown.value;
  const form = layer.weights ? "8-bit square roots" : `from ${layer.scores?.queries.dtype} q, k`;
  const further = quantity.name === "weight" ? [] : errorOf(shown.value);
  return [...checked, `error of a weight ≤ ${bound(layer.error)} (${form})`, ...further].join(" · ");
}

/** How exact another quantity is: a byte has 255 steps to the largest size, with a sign 127. */
function errorOf({ layer, quantity, valueNorms }: Shown): string[] {
  const array = layer.quantities?.[quantity.name];
  const step = array?.encoding === "signed" ? 127 : 255;
  const most = array
    ? (array.most ?? 1) / step
    : quantity.name === "score"
      ? null
      : layer.error * largest(valueNorms ?? []);
  return most === null ? [] : [`of ${quantity.label} ≤ ${bound(most)}`];
}

/** A field that finds a token and pins it. */
function Search({ store }: { store: Store }) {
  const field = useRef<HTMLInputElement>(null);
  const text = useSignal("");
  const at = useSignal(-1);
  useEffect(() => field.current?.focus(), []);
  const found = matches(store, text.value);
  const pin = (step: number) => {
    if (found.length === 0) return;
    at.value = (at.value + step + found.length) % found.length;
    const { side, token } = found[at.value];
    const piece = store.pieceAt({ side, token });
    store.choose({ query: [], key: [], [side]: [piece] });
  };
  const close = () => (store.searching.value = false);
  return (
    <search class="search row">
      <input
        ref={field}
        type="search"
        data-search
        aria-label="Find a token"
        placeholder="find a token"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = -1;
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") pin(event.shiftKey ? -1 : 1);
          else if (event.key !== "Escape") return;
          else close();
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <small role="status" data-search-said>
        {text.value && (at.value < 0 ? counted(found.length, "token") : `${at.value + 1} of ${found.length}`)}
      </small>
      <Quiet onClick={close}>close</Quiet>
    </search>
  );
}

/** The tokens with this text in them: those that look, and those that are looked at where these are others. */
function matches({ stack }: Store, text: string): Place[] {
  const wanted = text.trim().toLowerCase();
  const { query, key } = stack.value;
  const same = query.labels.join("\n") === key.labels.join("\n");
  const of = (side: Side, labels: readonly string[]) =>
    labels.flatMap((label, token) => (wanted && label.toLowerCase().includes(wanted) ? [{ side, token }] : []));
  return [...of("query", query.labels), ...(same ? [] : of("key", key.labels))];
}

/** What the reader waits for; shown only where it takes long enough to be noticed. */
function Loading({ store }: { store: Store }) {
  const { waiting, thumbsLeft } = store;
  const { layers, heads, thumbs } = store.stack.value;
  const [all, what] = thumbs.split === 2 ? [layers.length * heads, "heads"] : [layers.length, "layers"];
  const map = thumbsLeft.value > 0 && `map, ${all - thumbsLeft.value} of ${all} ${what}`;
  const words = [waiting.value, map].filter(Boolean).join(" · ");
  return (
    <div class="loading" role="status" data-loading={words || undefined}>
      {words && <span>Loading {words} …</span>}
    </div>
  );
}

/** What all heads do on this text, in one sentence: legend and filter at once. */
function Story({ store }: { store: Store }) {
  const kinds = store.kinds.value;
  if (!kinds) return <p class="story" aria-busy="true" />;
  const clauses = clausesOf(kinds);
  const heads = clauses.reduce((sum, clause) => sum + clause.count, 0);
  const chosen = store.selection.value.kind;
  const { key } = kinds.stack;
  const tokens = key.count ?? key.labels.length;
  return (
    <p class="story" data-story>
      {kinds.over
        ? `Over ${count(kinds.over.texts)} texts`
        : isPicture(store.stack.value.query)
          ? "On this picture"
          : `On these ${count(tokens)} tokens`}
      , of{" "}
      <strong>
        {count(heads)} {heads === 1 ? "head" : "heads"}
      </strong>{" "}
      <Clauses
        clauses={clauses}
        dark={store.dark.value}
        act={(kind) => ({ "aria-pressed": chosen === kind, onClick: () => chooseKind(store, kind) })}
      />
      {kinds.left > 0 && <small role="status"> loading …</small>}
    </p>
  );
}

/** Only the heads of a kind stand out, and the clearest of them is shown; all again where they did already. */
function chooseKind(store: Store, kind: KindName): void {
  const kinds = store.kinds.value;
  if (store.selection.value.kind === kind || !kinds) {
    store.choose({ kind: null });
    return;
  }
  const first = headsByKind(kinds).find((group) => group.kind === kind)?.heads[0] ?? 0;
  store.select((now) => ({ ...keepHead(now, first, store.stack.value), kind }));
}
