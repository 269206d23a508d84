import { useComputed, useSignal } from "@preact/signals";
import { textOn } from "../../draw/color";
import { barOf, received, strongest, type TokenAttention } from "../../draw/focus";
import { isPair } from "../../draw/mask";
import { type Focus, otherSide, type Place } from "../../draw/place";
import { largest } from "../../draw/values";
import { Patch } from "../../parts/Patch";
import { readable } from "../../state/label";
import { valueText } from "../../state/quantity";
import { barColors, type Store } from "../../state/store";
import { counted } from "../../state/words";

const MOST_TOKENS = 12;
const MOST_PER_HEAD = 3;

/** The picture as a list: what the token in focus attends to, or which tokens receive most. */
export function Inspector({ store }: { store: Store }) {
  const perHead = useSignal(false);
  const overall = useComputed(() => {
    const [values, mask] = [store.values.value, store.mask.value];
    return values && mask && received(values, store.maps.value, mask);
  });
  const focus = store.focus.value;
  const attention = store.attention.value ?? overall.value;
  if (!attention) return <aside class="card inspector" />;
  const together = store.quantity.value.per === "layer";
  const listed = perHead.value && !together;
  return (
    <aside class="card inspector" aria-label="Numbers" data-inspector>
      {focus ? <TokenHeading store={store} focus={focus} /> : <LayerHeading store={store} />}
      <div class="list-head">
        <span>{listed ? "strongest of each head" : meanOf(store)}</span>
        {!together && (
          <button
            type="button"
            class="quiet"
            data-per-head
            aria-pressed={perHead.value}
            onClick={() => {
              perHead.value = !perHead.value;
            }}
          >
            per head
          </button>
        )}
      </div>
      {listed ? <HeadList store={store} attention={attention} /> : <TokenList store={store} attention={attention} />}
      {!focus && <p class="hint">Point at a token to follow its attention, click to pin it, Escape to let go.</p>}
      <p class="spoken" aria-live="polite">
        {focus ? spoken(store, focus, attention) : ""}
      </p>
    </aside>
  );
}

function LayerHeading({ store }: { store: Store }) {
  return (
    <div class="heading">
      <small>{isWeight(store) ? "most attended keys" : `keys with most ${wordOf(store)}`}, mean over queries</small>
      <strong>Layer {store.shown.value?.layer.layer}</strong>
    </div>
  );
}

function TokenHeading({ store, focus }: { store: Store; focus: Focus }) {
  const place = { side: focus.side, token: focus.tokens[0] };
  const { text, standIn } = labelOf(store, place);
  const stack = store.shownStack.value;
  const more = focus.tokens.length - 1;
  const segment = stack && isPair(stack) ? ` · text ${stack[place.side].segments[place.token] === 0 ? "A" : "B"}` : "";
  return (
    <div class="heading">
      <small>
        {wordOf(store)} {place.side === "query" ? "from" : "to"}
      </small>
      <strong data-stand-in={standIn || undefined}>
        <bdi>{text}</bdi>
      </strong>
      <small>
        token {place.token}
        {segment}
        {more > 0 && ` and ${more} more, mean`}
        {store.pins.value[focus.side].includes(place.token) && " · pinned"}
      </small>
    </div>
  );
}

function TokenList({ store, attention }: { store: Store; attention: TokenAttention }) {
  const tokens = strongest(attention.mean, MOST_TOKENS, orderOf(store));
  const most = largest(tokens.map((token) => attention.mean[token]));
  const full = isWeight(store) ? Math.max(most, 0.1) : most;
  const colors = barColors(store);
  const side = listedSide(store);
  return (
    <ol class="token-list">
      {tokens.map((token, at) => {
        const { length, parts } = barOf(attention, token, full, colors);
        return (
          <li key={at} data-listed={token}>
            <ListedToken store={store} place={{ side, token }} />
            <span class="bar" style={{ "--length": length, "--parts": parts }} />
            <span class="number">{valueText(store.quantity.value)(attention.mean[token])}</span>
          </li>
        );
      })}
    </ol>
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
                <span class="number">{valueText(store.quantity.value)(weights[token])}</span>
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
