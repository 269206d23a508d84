import { useComputed, useSignal } from "@preact/signals";
import { textOn } from "../../draw/color";
import { received, stackedBar, strongest, type TokenAttention } from "../../draw/focus";
import { isPair } from "../../draw/mask";
import { type Focus, otherSide, type Place } from "../../draw/place";
import { readable } from "../../state/label";
import type { Store } from "../../state/store";
import { counted, shortWeight } from "../../state/words";

const MOST_TOKENS = 12;
const MOST_PER_HEAD = 3;

/** The picture as a list: what the token in focus attends to, or which tokens receive most. */
export function Inspector({ store }: { store: Store }) {
  const perHead = useSignal(false);
  const overall = useComputed(() => {
    const [weights, mask] = [store.weights.value, store.mask.value];
    return weights && mask && received(weights, store.heads.value, mask);
  });
  const focus = store.focus.value;
  const attention = store.attention.value ?? overall.value;
  if (!attention) return <aside class="card inspector" />;
  return (
    <aside class="card inspector" aria-label="Numbers" data-inspector>
      {focus ? <TokenHeading store={store} focus={focus} /> : <LayerHeading store={store} />}
      <div class="list-head">
        <span>{perHead.value ? "strongest of each head" : meanOf(store.heads.value.length)}</span>
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
      </div>
      {perHead.value ? (
        <HeadList store={store} attention={attention} />
      ) : (
        <TokenList store={store} attention={attention} />
      )}
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
      <small>most attended keys, mean over queries</small>
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
      <small>{place.side === "query" ? "attention from" : "attention to"}</small>
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
  const tokens = strongest(attention.mean, MOST_TOKENS);
  const full = Math.max(attention.mean[tokens[0]] ?? 0, 0.1);
  const colors = store.heads.value.map((head) => store.palette.value[head]);
  const side = listedSide(store);
  return (
    <ol class="token-list">
      {tokens.map((token) => {
        const weight = attention.mean[token];
        const parts = stackedBar(
          attention.byHead.map((head) => head[token]),
          colors,
        );
        return (
          <li key={token} data-listed={token}>
            <ListedToken store={store} place={{ side, token }} />
            <span class="bar" style={{ "--length": `${(100 * weight) / full}%`, "--parts": parts }} />
            <span class="number">{shortWeight(weight)}</span>
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
            {strongest(weights, MOST_PER_HEAD).map((token) => (
              <span key={token} class="entry">
                <ListedToken store={store} place={{ side, token }} />
                <span class="number">{shortWeight(weights[token])}</span>
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
  return (
    <bdi class="label" title={`${text}, token ${place.token}`} data-stand-in={standIn || undefined}>
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

function meanOf(heads: number): string {
  return heads === 1 ? "one head" : `mean of ${counted(heads, "head")}`;
}

function spoken(store: Store, focus: Focus, { mean }: TokenAttention): string {
  const side = otherSide(focus.side);
  const list = strongest(mean, 3).map((token) => `${labelOf(store, { side, token }).text} ${mean[token].toFixed(2)}`);
  const verb = focus.side === "query" ? "attends to" : "is attended to by";
  return `${labelOf(store, { side: focus.side, token: focus.tokens[0] }).text} ${verb} ${list.join(", ") || "nothing that is shown"}`;
}
