import { useComputed } from "@preact/signals";
import { type ComponentChildren, type ComponentType, createContext } from "preact";
import { useContext } from "preact/hooks";
import { VIEWS_WITH } from "../../../contract/values";
import type { PageStack } from "../../../types/page";
import { kindColor } from "../../draw/kinds";
import { type Focus, otherSide, type Place } from "../../draw/tokens";
import { largest, missingShare, strongest } from "../../draw/values";
import { Quiet, Segmented } from "../../parts/controls";
import { HeadCard } from "../../parts/evidence";
import { KindIcon } from "../../parts/legend";
import type { ViewParts } from "../../parts/mount";
import { QuantityNote, WordsNote } from "../../parts/notes";
import { Patch } from "../../parts/tokens";
import { headName, headWords as labelWords } from "../../state/evidence";
import { headWords, kindOf } from "../../state/kinds";
import { isShare } from "../../state/quantity";
import { DRAWINGS, type Drawing, drawingsOf, FEW_QUERIES, type View } from "../../state/selection";
import { freeze, openDrawing, type Store } from "../../state/store";
import { amount, counted, quoted, readable, shortWeight } from "../../state/words";
import { HeadView } from "../head/Picture";
import { Listed, LongText, SentenceCard, SentenceMap } from "../long/LongText";
import { MatrixView } from "../matrix/MatrixView";
import { NeuronView } from "../neuron/NeuronView";
import { TextView } from "../text/TextView";
import { HeadMap } from "./HeadMap";

const PICTURES: Readonly<Record<Drawing, ComponentType<ViewParts>>> = {
  head: HeadView,
  matrix: MatrixView,
  text: TextView,
  neuron: NeuronView,
};

/** What draws a head: of a long text by its sentences. */
export function picturesOf({ sentences }: PageStack): typeof PICTURES {
  return sentences ? { ...PICTURES, head: SentenceMap, matrix: SentenceMap, text: LongText } : PICTURES;
}

const WORDS: Readonly<Record<Drawing, string>> = {
  head: "lines",
  matrix: "matrix",
  text: "on the text",
  neuron: "neurons",
};

/** Height of what stands above the picture in its card. */
const HEADLINE = 54;

/** One head: all heads and the pinned token at the left, its picture at the right. */
export function OneHead({ store, room }: ViewParts) {
  const view = store.view.value as Drawing;
  const left = useComputed(() => room.value - HEADLINE);
  const pictures = picturesOf(store.stack.value);
  const Picture = pictures[view];
  const Beside = pictures.text;
  const long = store.stack.value.sentences !== undefined;
  // Many rows are read beside their words.
  const queries = store.stack.value.query.labels.length;
  const beside = view === "matrix" && queries >= FEW_QUERIES && !store.stack.value.query.areas;
  return (
    <div class="body stack top" data-view={view}>
      <div class="beside stack slim">
        <HeadMap store={store} />
        {!VIEWS_WITH.wide.includes(view) && (long ? <SentenceCard store={store} /> : <PinCard store={store} />)}
        <HeadCard store={store} />
      </div>
      <section class="card stage slim" id="view" role="tabpanel" aria-label="One head">
        <Headline store={store}>
          <DrawingChoice store={store} />
        </Headline>
        <div class={beside ? "with-text stack" : undefined}>
          <div>
            <Picture store={store} room={left} />
          </div>
          {beside && (
            <div>
              <Beside store={store} room={left} plain />
            </div>
          )}
        </div>
        <WordsNote store={store} />
        <QuantityNote store={store} />
      </section>
    </div>
  );
}

function DrawingChoice({ store }: { store: Store }) {
  const there = drawingsOf(store.stack.value);
  const { query, sentences } = store.stack.value;
  const words = {
    ...WORDS,
    ...(query.areas && { text: "on the picture" }),
    ...(sentences && { matrix: "by sentence" }),
  };
  return (
    <Segmented
      label="Drawn as"
      options={DRAWINGS.filter((drawing) => there.includes(drawing))}
      labels={words}
      chosen={store.view.value}
      onChoose={(chosen) => openDrawing(store, chosen as View)}
    />
  );
}

const MOST_TOKENS = 9;
/** Weights that are printed as less than a thousandth are no rows. */
const LEAST_LISTED = 0.0005;
/** In a causal text late tokens are seen by few: what they get is listed from so many queries on. */
const LEAST_SEEN = 8;

/** What a live model adds below the numbers of the pinned token. */
export const UnderPin = createContext<ComponentChildren>(null);

/** The picture as a list: what the token in focus attends to, or which tokens receive most. */
function PinCard({ store }: { store: Store }) {
  const overall = useComputed(() => store.receivedOfAll.value);
  const focus = store.focus.value;
  const attention = store.attention.value ?? overall.value;
  if (!attention) return <aside class="card pin-card" />;
  return (
    <aside class="card pin-card" aria-label="Numbers" data-inspector style={{ "--kind": store.color.value }}>
      <strong data-chosen>{focus ? titleOf(store, focus) : "Tokens that get most"}</strong>
      <p class="sentence" data-sentence>
        {sentence(store, focus)}
      </p>
      <TokenList store={store} attention={attention} />
      <ValueNorms store={store} />
      {useContext(UnderPin)}
      {!focus && <p class="hint">Point at a token to follow its attention, click to pin it, Esc to unpin.</p>}
      <p class="spoken" aria-live="polite">
        {focus ? spoken(store, focus, attention) : ""}
      </p>
    </aside>
  );
}

/** “went” attends to: "“went” looks at", "what looks at “went”"; of several their number. */
function titleOf(store: Store, { side, tokens }: Focus): string {
  const name = quoted(labelOf(store, { side, token: tokens[0] }).text);
  const more = tokens.length > 1 ? ` and ${tokens.length - 1} more, their ${store.selection.value.pinned}` : "";
  return side === "query" ? `${name}${more} looks at` : `What looks at ${name}${more}`;
}

/** How many tokens it sees and what even attention would give each of them. */
function sentence(store: Store, focus: Focus | null): string {
  const facts = store.quantity.value;
  if (!isShare(facts)) return focus ? `tokens with most ${facts.label}` : `most ${facts.label}, mean over queries`;
  if (focus?.side !== "query") return "mean over queries; × even: as often as even attention would give";
  const seen = store.evenAttention.value.filter((share) => share > 0);
  const even = seen.reduce((sum, share) => sum + share, 0) / (seen.length || 1);
  return `it sees ${counted(seen.length, "token")}; even: ${shortWeight(even)} each`;
}

function TokenList({ store, attention: mean }: { store: Store; attention: Float32Array }) {
  const facts = store.quantity.value;
  const [first, rest] = [store.evenAttention.value, isShare(facts)];
  const order = facts.name === "score" ? Number : Math.abs;
  const all = strongest(mean, MOST_TOKENS + LEAST_SEEN, order).filter((token) => isSeen(store, token));
  // Rows of "<.001" say nothing.
  const tokens = all.filter((token, at) => at < 3 || !rest || mean[token] >= LEAST_LISTED).slice(0, MOST_TOKENS);
  const full = Math.max(largest(tokens.map((token) => mean[token])), rest ? 0.1 : 0);
  const side = store.focus.value ? otherSide(store.focus.value.side) : "key";
  return (
    <ol class="token-list stack">
      {tokens.map((token) => {
        const [number, beside] = store.numbers.value(mean[token], first[token]);
        return (
          <li key={token} data-listed={token}>
            <ListedToken store={store} place={{ side, token }} />
            <Listed part={Math.abs(mean[token]) / full} number={number} />
            <small class="number">{beside}</small>
          </li>
        );
      })}
      <Missing store={store} full={full} />
    </ol>
  );
}

/** The length of what each key adds at weight 1, where the record has it. */
function ValueNorms({ store }: { store: Store }) {
  const norms = store.valueNorms.value;
  if (!norms) return null;
  return (
    <details data-norms>
      <summary>numbers: value norms, up to {amount(norms.most)}</summary>
      <ol class="token-list stack">
        {[...norms.values].map((norm, token) => (
          <li key={token}>
            <ListedToken store={store} place={{ side: "key", token }} />
            <Listed part={norm / (norms.most || 1)} number={amount(norm)} />
          </li>
        ))}
      </ol>
    </details>
  );
}

/** Whether enough queries see a key that its mean means something; all do where a token is in focus. */
function isSeen({ focus, shown, kinds }: Store, token: number): boolean {
  const queries = shown.value?.weights.queries ?? 0;
  return focus.value !== null || !kinds.value?.said.causal || queries - token >= Math.min(LEAST_SEEN, queries / 2);
}

/** What no key has of a query's weight, hatched: it was cut before it came here, or went to a sink that is no token. */
function Missing({ store, full }: { store: Store; full: number }) {
  const { shown, head, focus, quantity } = store;
  const { layer, weights } = shown.value ?? {};
  const told = weights && layer?.row_sums === "less" && quantity.value.name === "weight";
  if (!told || focus.value?.side === "key") return null;
  const share = focus.value ? missingShare(weights, head.value, focus.value.tokens) : layer.not_kept;
  if (!share || share < LEAST_LISTED) return null;
  return (
    <li data-missing>
      <span>{layer.not_kept === undefined ? "sink" : "not kept"}</span>
      <Listed part={share / full} number={shortWeight(share)} void />
    </li>
  );
}

function ListedToken({ store, place }: { store: Store; place: Place }) {
  const { text, standIn } = labelOf(store, place);
  const tokens = store.shownStack.value?.[place.side];
  return (
    <bdi class="label" title={`${text}, token ${place.token}`} data-stand-in={standIn || undefined}>
      {tokens && <Patch tokens={tokens} token={place.token} pictures={store.pictures.value} />}
      {text}
    </bdi>
  );
}

function labelOf(store: Store, { side, token }: Place) {
  return readable(store.shownStack.value?.[side].labels[token] ?? "");
}

function spoken(store: Store, focus: Focus, mean: Float32Array): string {
  const side = otherSide(focus.side);
  const { name, label } = store.quantity.value;
  const list = strongest(mean, 3, name === "score" ? Number : Math.abs).map(
    (token) => `${labelOf(store, { side, token }).text} ${mean[token].toFixed(2)}`,
  );
  const verbs =
    name === "weight" ? ["attends to", "is attended to by"] : [`has most ${label} from`, `gives most ${label} to`];
  const verb = verbs[focus.side === "query" ? 0 : 1];
  return `${labelOf(store, { side: focus.side, token: focus.tokens[0] }).text} ${verb} ${list.join(", ") || "nothing that is shown"}`;
}

/** What a head does, the same line in every place; what can be done with it is given. */
export function Headline({ store, children }: { store: Store; children?: ComponentChildren }) {
  const { full, kinds, evidence, stack, dark } = store;
  const at = full.value;
  const known = kinds.value;
  const kind = known && kindOf(known, at);
  const { moved, heads } = stack.value;
  // Its weights are those that it would have: nothing of them reaches the output as it did.
  const changed = moved?.changed[Math.floor(at / heads)][at % heads];
  const words = changed
    ? { does: "is changed on purpose", more: "" }
    : known
      ? headWords(known, at)
      : { does: "", more: "" };
  const labels = evidence.value ? labelWords(evidence.value, at) : "";
  const more = [words.more && `here ${words.more}`, labels && `over many texts: ${labels}`].filter(Boolean).join(" · ");
  return (
    <div
      class="headline row wrap relative"
      data-changed={changed || undefined}
      style={{ "--kind": kind && !changed ? kindColor(kind, dark.value) : undefined }}
    >
      <h2 data-headline>
        {kind && !changed && <KindIcon kind={kind} />}
        Head {headName({ stack: stack.value }, at)} <span>{words.does}</span>
      </h2>
      <div class="headline-tools flex">
        {children}
        <Quiet data-freeze title="Compare this head with others side by side (a)" onClick={() => freeze(store)}>
          + compare
        </Quiet>
      </div>
      <p data-more title={more}>
        {more}
      </p>
    </div>
  );
}
