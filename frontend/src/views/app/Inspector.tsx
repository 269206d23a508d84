import { useComputed } from "@preact/signals";
import { textOn } from "../../draw/color";
import { barOf, missingShare, received, strongest, type TokenAttention } from "../../draw/focus";
import { isPair } from "../../draw/mask";
import { type Focus, otherSide, type Place } from "../../draw/place";
import { largest } from "../../draw/values";
import { Patch } from "../../parts/Patch";
import { readable } from "../../state/label";
import { numberList } from "../../state/numbers";
import { barColors, type Store } from "../../state/store";
import { count, counted, shortWeight } from "../../state/words";

const MOST_TOKENS = 12;
const MOST_PER_HEAD = 3;
/** Weights that are printed as less than a thousandth are no rows. */
const LEAST_LISTED = 0.0005;
/** With more heads than this bars have one colour. */
const MOST_COLOURED = 4;

/** The picture as a list: what the token in focus attends to, or which tokens receive most. */
export function Inspector({ store }: { store: Store }) {
  const perHead = store.selection.value.per_head;
  const overall = useComputed(() => {
    const [values, mask] = [store.values.value, store.mask.value];
    return values && mask && received(values, store.maps.value, mask);
  });
  const focus = store.focus.value;
  const attention = store.attention.value ?? overall.value;
  if (!attention) return <aside class="card inspector" />;
  const together = store.quantity.value.per === "layer";
  const listed = perHead && !together;
  return (
    <aside class="card inspector" aria-label="Numbers" data-inspector>
      <Heading store={store} focus={focus} attention={attention} />
      <div class="list-head">
        <span>{listed ? "strongest of each head" : meanOf(store)}</span>
        {!together && (
          <button
            class="quiet"
            data-per-head
            aria-pressed={perHead}
            onClick={() => store.choose({ per_head: !perHead })}
          >
            per head
          </button>
        )}
      </div>
      {listed ? <HeadList store={store} attention={attention} /> : <TokenList store={store} attention={attention} />}
      {!focus && <p class="hint">Point at a token to follow its attention, click to pin it, Esc to unpin.</p>}
      <p class="spoken" aria-live="polite">
        {focus ? spoken(store, focus, attention) : ""}
      </p>
    </aside>
  );
}

/** What is chosen, and what it does with its attention in a sentence. */
function Heading({ store, focus, attention }: { store: Store; focus: Focus | null; attention: TokenAttention }) {
  const place = focus && { side: focus.side, token: focus.tokens[0] };
  const { text, standIn } = place ? labelOf(store, place) : { text: "", standIn: false };
  return (
    <div class="heading">
      <strong data-chosen>{chosenName(store)}</strong>
      {place && (
        <span class="chosen-token">
          {place.side === "query" ? "from" : "to"}{" "}
          <strong data-stand-in={standIn || undefined}>
            <bdi>{text}</bdi>
          </strong>{" "}
          <small>{placeWords(store, place, focus.tokens.length - 1)}</small>
        </span>
      )}
      <p class="sentence" data-sentence>
        {sentence(store, focus, attention)}
      </p>
    </div>
  );
}

/** "Head 2-0", "Layer 2, heads 1, 3", "Layers 0, 2, all 12 heads". */
function chosenName({ shown, heads, selection, quantity }: Store): string {
  const { layer, stack } = shown.value ?? {};
  if (!layer || !stack) return "";
  const mean = selection.value.mean_layers;
  const layers = [...new Set([layer.layer, ...mean])].sort((a, b) => a - b);
  const on = heads.value.map((head) => stack.head_numbers[head]);
  if (quantity.value.per === "layer") return `Layer ${layer.layer}, all heads together`;
  if (layers.length === 1 && on.length === 1) return `Head ${layers[0]}-${on[0]}`;
  const of = layers.length === 1 ? `Layer ${layers[0]}` : `Layers ${numberList(layers)}`;
  if (on.length === stack.head_numbers.length)
    return `${of}, ${on.length === 1 ? "its head" : `all ${on.length} heads`}`;
  return `${of}, ${on.length > 6 ? `${on.length} heads` : `head${on.length > 1 ? "s" : ""} ${numberList(on)}`}`;
}

function placeWords(store: Store, { side, token }: Place, more: number): string {
  const stack = store.shownStack.value;
  const words = [`${store.merged.value ? "word" : "token"} ${token}`];
  if (stack && isPair(stack)) words.push(`text ${stack[side].segments[token] === 0 ? "A" : "B"}`);
  if (more > 0) words.push(`and ${more} more, their ${store.selection.value.pinned}`);
  if (store.pins.value[side].includes(token)) words.push("pinned");
  return words.join(" · ");
}

/** Where most of it goes, and what is left for all others. */
function sentence(store: Store, focus: Focus | null, { mean }: TokenAttention): string {
  if (!isWeight(store)) {
    const what = focus ? "" : ", mean over queries";
    return `${focus ? "tokens" : "keys"} with most ${wordOf(store)}${what}`;
  }
  const side = listedSide(store);
  const [first] = strongest(mean, 1);
  if (first === undefined) return "Nothing that is shown.";
  const others = mean.reduce((count, value) => count + (value > 0 ? 1 : 0), 0) - 1;
  const rest = mean.reduce((sum, value) => sum + value, 0) - mean[first];
  const name = `“\u2068${labelOf(store, { side, token: first }).text}\u2069” ${store.told.value(mean[first], store.evenAttention.value[first])}`;
  const left = others > 0 ? `; ${count(others)} other${others > 1 ? "s" : ""} together ${shortWeight(rest)}` : "";
  if (focus?.side === "key") return `Most comes from ${name}${left}.`;
  return `${focus ? "Most goes to" : "Most goes to, mean over queries:"} ${name}${left}.`;
}

function TokenList({ store, attention }: { store: Store; attention: TokenAttention }) {
  // Rows of "<.001" say nothing: what is left is told in the sentence.
  const least = isWeight(store) ? LEAST_LISTED : 0;
  const all = strongest(attention.mean, MOST_TOKENS, orderOf(store));
  const tokens = all.filter((token, at) => at < 3 || attention.mean[token] >= least);
  const most = largest(tokens.map((token) => attention.mean[token]));
  const full = isWeight(store) ? Math.max(most, 0.1) : most;
  // Bars of many colours, two pixels each, cannot be read: one colour for the mean.
  const many = attention.byHead.length > MOST_COLOURED && isWeight(store);
  const colors = many ? { maps: ["var(--accent)"] } : barColors(store);
  const shown = many ? { ...attention, byHead: [attention.mean] } : attention;
  const side = listedSide(store);
  return (
    <ol class="token-list">
      {tokens.map((token, at) => {
        const { length, parts } = barOf(shown, token, full, colors);
        return (
          <li key={at} data-listed={token}>
            <ListedToken store={store} place={{ side, token }} />
            <span class="bar" style={{ "--length": length, "--parts": parts }} />
            <span class="number">{store.told.value(attention.mean[token], store.evenAttention.value[token])}</span>
          </li>
        );
      })}
      <Missing store={store} full={full} />
    </ol>
  );
}

/** What no key has of a query's weight, hatched: it was cut before it came here, or went to a sink that is no token. */
function Missing({ store, full }: { store: Store; full: number }) {
  const { shown, heads, focus } = store;
  const { layer, weights } = shown.value ?? {};
  if (!weights || layer?.row_sums !== "less" || !isWeight(store) || focus.value?.side === "key") return null;
  const share = focus.value ? missingShare(weights, heads.value, focus.value.tokens) : layer.not_kept;
  if (!share || share < LEAST_LISTED) return null;
  return (
    <li data-missing>
      <span>{layer.not_kept === undefined ? "sink" : "not kept"}</span>
      <span class="bar void" style={{ "--length": `${(100 * share) / full}%` }} />
      <span class="number">{shortWeight(share)}</span>
    </li>
  );
}

function HeadList({ store, attention }: { store: Store; attention: TokenAttention }) {
  const side = listedSide(store);
  return (
    <ol class="head-list">
      {store.heads.value.map((head, index) => {
        const weights = attention.byHead[index];
        const color = store.palette.value[head];
        return (
          <li key={head} data-listed-head={head}>
            <span class="badge" style={{ background: color, color: textOn(store.inks.value[head]) }}>
              {store.shownStack.value?.head_numbers[head]}
            </span>
            {strongest(weights, MOST_PER_HEAD, orderOf(store)).map((token) => (
              <span key={token} class="entry">
                <ListedToken store={store} place={{ side, token }} />
                <span class="number">{store.told.value(weights[token], store.evenAttention.value[token])}</span>
              </span>
            ))}
          </li>
        );
      })}
    </ol>
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

function listedSide(store: Store) {
  return store.focus.value ? otherSide(store.focus.value.side) : "key";
}

function labelOf(store: Store, { side, token }: Place) {
  return readable(store.shownStack.value?.[side].labels[token] ?? "");
}

function meanOf({ heads, quantity }: Store): string {
  const { length } = heads.value;
  if (quantity.value.per === "layer") return "all heads together";
  return length === 1 ? "one head" : `mean of ${counted(length, "head")}`;
}

function isWeight({ quantity }: Store): boolean {
  return quantity.value.name === "weight";
}

function wordOf({ quantity }: Store): string {
  return quantity.value.name === "weight" ? "attention" : quantity.value.label;
}

/** Of scores the highest come first: they win the softmax. */
function orderOf({ quantity }: Store): (value: number) => number {
  return quantity.value.name === "score" ? Number : Math.abs;
}

function spoken(store: Store, focus: Focus, { mean }: TokenAttention): string {
  const side = otherSide(focus.side);
  const list = strongest(mean, 3, orderOf(store)).map(
    (token) => `${labelOf(store, { side, token }).text} ${mean[token].toFixed(2)}`,
  );
  const [from, to] = isWeight(store)
    ? ["attends to", "is attended to by"]
    : [`has most ${wordOf(store)} from`, `gives most ${wordOf(store)} to`];
  const verb = focus.side === "query" ? from : to;
  return `${labelOf(store, { side: focus.side, token: focus.tokens[0] }).text} ${verb} ${list.join(", ") || "nothing that is shown"}`;
}
