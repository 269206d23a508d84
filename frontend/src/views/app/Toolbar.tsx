import { FILTERS, type Filter, hasSpecial, isPair } from "../../draw/mask";
import { SHARES } from "../../draw/share";
import { HeadChips } from "../../parts/HeadChips";
import { LayerStepper } from "../../parts/LayerStepper";
import { Segmented } from "../../parts/Segmented";
import { allHeads, chooseLayer, chooseStack, soloHead, stepLayer, toggleHead, type View } from "../../state/selection";
import type { Store } from "../../state/store";
import { percent } from "../../state/words";

const FILTER_WORDS: Readonly<Record<Filter, string>> = {
  all: "all tokens",
  aa: "within A",
  ab: "from A to B",
  ba: "from B to A",
  bb: "within B",
};

export function Toolbar({ store }: { store: Store }) {
  const stack = store.shownStack.value ?? store.stack.value;
  const view = store.view.value;
  return (
    <div class="toolbar">
      <StackChoice store={store} />
      <LayerChoice store={store} />
      <HeadChoice store={store} />
      {WITH_MASK.includes(view) && isPair(stack) && <FilterChoice store={store} />}
      {WITH_MASK.includes(view) && hasSpecial(stack) && <MuteChoice store={store} />}
      {view === "head" && <ShareChoice store={store} />}
      {store.quantities.value.length > 1 && <QuantityChoice store={store} />}
    </div>
  );
}

/** Views of some tokens, not of all or of a pair. */
const WITH_MASK: readonly View[] = ["head", "matrix", "text"];

/** Quantities whose names have more letters than this do not stand beside each other. */
const MOST_BESIDE = 48;

function QuantityChoice({ store: { quantities, selection, select } }: { store: Store }) {
  if (quantities.value.reduce((letters, { label }) => letters + label.length, 0) > MOST_BESIDE) {
    return (
      <label class="choice">
        <select
          data-quantities
          aria-label="Quantity"
          value={selection.value.quantity}
          onChange={(event) => {
            const quantity = event.currentTarget.value;
            select((now) => ({ ...now, quantity }));
          }}
        >
          {quantities.value.map(({ name, label, explanation }) => (
            <option key={name} value={name} title={explanation}>
              {label}
            </option>
          ))}
        </select>
      </label>
    );
  }
  const labels = Object.fromEntries(quantities.value.map(({ name, label }) => [name, label]));
  return (
    <Segmented
      label="Quantity"
      options={Object.keys(labels)}
      labels={labels}
      chosen={selection.value.quantity}
      onChoose={(quantity) => select((now) => ({ ...now, quantity }))}
    />
  );
}

function StackChoice({ store: { page, selection, select } }: { store: Store }) {
  if (page.stacks.length < 2) return null;
  return (
    <Segmented
      label="Kind of attention"
      options={page.stacks.map(({ name }) => name)}
      chosen={selection.value.stack}
      onChoose={(name) => select((now) => chooseStack(now, name, page))}
    />
  );
}

function LayerChoice({ store: { stack, selection, select } }: { store: Store }) {
  return (
    <LayerStepper
      layers={stack.value.layers}
      layer={selection.value.layer}
      onChoose={(layer) => select((now) => chooseLayer(now, layer))}
      onStep={(step) => select((now) => stepLayer(now, step, stack.value))}
    />
  );
}

function HeadChoice({ store: { stack, shownStack, palette, heads, select } }: { store: Store }) {
  const colors = palette.value;
  const now = shownStack.value ?? stack.value;
  return (
    <HeadChips
      colors={colors}
      numbers={now.head_numbers}
      on={heads.value}
      onToggle={(head) => select((selection) => toggleHead(selection, head, now))}
      onSolo={(head) => select((selection) => soloHead(selection, head, now))}
      onAll={() => select(allHeads)}
    />
  );
}

function FilterChoice({ store: { selection, select } }: { store: Store }) {
  return (
    <label class="choice" title="A is the first text, B the second: show only the attention within one or between them">
      <select
        data-filter
        aria-label="Which tokens"
        value={selection.value.filter}
        onChange={(event) => {
          const filter = event.currentTarget.value as Filter;
          select((now) => ({ ...now, filter }));
        }}
      >
        {FILTERS.map((filter) => (
          <option key={filter} value={filter}>
            {FILTER_WORDS[filter]}
          </option>
        ))}
      </select>
    </label>
  );
}

function MuteChoice({ store: { selection, select, mutedPart } }: { store: Store }) {
  const { mute } = selection.value;
  return (
    <label class="choice" title="Leave out tokens such as [CLS] and [SEP], which often take most of the attention">
      <input
        type="checkbox"
        data-mute
        checked={mute}
        onChange={(event) => {
          const { checked } = event.currentTarget;
          select((now) => ({ ...now, mute: checked }));
        }}
      />
      <span>mute [special]</span>
      {mute && <small data-muted-part>hides {percent(mutedPart.value)}</small>}
    </label>
  );
}

function ShareChoice({ store: { selection, select, step } }: { store: Store }) {
  const share = SHARES[step.value];
  const automatic = selection.value.share === null;
  return (
    <div class="choice" title="Of each token and head only the strongest lines, up to this share of its attention">
      <label class="choice">
        <span>top share</span>
        <input
          type="range"
          data-share
          min={SHARES[0]}
          max={100}
          step={SHARES[1] - SHARES[0]}
          value={share}
          aria-valuetext={`${share} %`}
          onInput={(event) => {
            const wanted = Number(event.currentTarget.value);
            select((now) => ({ ...now, share: wanted }));
          }}
        />
        <output class="share">{share} %</output>
      </label>
      <button
        type="button"
        class="quiet"
        aria-pressed={automatic}
        title="As much as can be drawn quickly"
        onClick={() => select((now) => ({ ...now, share: automatic ? share : null }))}
      >
        auto
      </button>
    </div>
  );
}
