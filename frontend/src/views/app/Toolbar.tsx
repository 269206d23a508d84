import { useRef } from "preact/hooks";
import { CHOICES, VIEWS_WITH } from "../../contract/values";
import { type Filter, hasSpecial, isPair } from "../../draw/mask";
import { SHARES } from "../../draw/share";
import { Check } from "../../parts/Check";
import { Choice } from "../../parts/Choice";
import { HeadChips } from "../../parts/HeadChips";
import { canFreeze } from "../../parts/keyboard";
import { LayerStepper } from "../../parts/LayerStepper";
import { QuantityChoice } from "../../parts/QuantityChoice";
import { Segmented } from "../../parts/Segmented";
import { useWidth } from "../../parts/useWidth";
import { allHeads, chooseLayer, chooseStack, soloHead, stepLayer, toggleHead } from "../../state/selection";
import { freeze, type Store } from "../../state/store";
import { percent } from "../../state/words";
import { More } from "./More";

const FILTER_WORDS: Readonly<Record<Filter, string>> = {
  all: "all tokens",
  aa: "within A",
  ab: "from A to B",
  ba: "from B to A",
  bb: "within B",
};

/** Up to this width only layer and heads stand there, and all else behind "more". */
const NARROW = 520;

export function Toolbar({ store }: { store: Store }) {
  const stack = store.shownStack.value ?? store.stack.value;
  const view = store.view.value;
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  if (view === "compare") return null;
  if (view === "overview") return <OverviewToolbar store={store} />;
  const further = (
    <>
      {VIEWS_WITH.mask.includes(view) && isPair(stack) && <FilterChoice store={store} />}
      {VIEWS_WITH.mask.includes(view) && hasSpecial(stack) && <SpecialChoice store={store} />}
      {view === "head" && <ShareChoice store={store} />}
      {store.quantities.value.length > 1 && <QuantityChoice store={store} />}
      {canFreeze(store) && <FreezeButton store={store} />}
    </>
  );
  const narrow = width.value > 0 && width.value <= NARROW;
  return (
    <div class="toolbar" ref={root}>
      <StackChoice store={store} />
      <LayerChoice store={store} />
      <HeadChoice store={store} />
      {!narrow && further}
      <More store={store}>{narrow && further}</More>
    </div>
  );
}

/** Keeps what is shown as a picture of the tray. */
export function FreezeButton({ store }: { store: Store }) {
  return (
    <button
      class="quiet"
      data-freeze
      title="Keep this picture, to compare it with others side by side (a)"
      onClick={() => freeze(store)}
    >
      + compare
    </button>
  );
}

/** The overview shows all layers and heads: only what they are heads of can be chosen. */
function OverviewToolbar({ store }: { store: Store }) {
  if (store.page.stacks.length < 2) return null;
  return (
    <div class="toolbar">
      <StackChoice store={store} />
    </div>
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
      onToggle={(head) =>
        select((selection) => (selection.view === "neuron" ? soloHead : toggleHead)(selection, head, now))
      }
      onSolo={(head) => select((selection) => soloHead(selection, head, now))}
      onChoose={(chosen) =>
        select((selection) => (chosen.length === 0 ? allHeads(selection) : { ...selection, heads: [...chosen] }))
      }
    />
  );
}

function FilterChoice({ store: { selection, choose } }: { store: Store }) {
  return (
    <Choice
      label="Which tokens"
      silent
      title="A is the first text, B the second: show only the attention within one or between them"
      name="data-filter"
      options={CHOICES.filter}
      words={FILTER_WORDS}
      chosen={selection.value.filter}
      onChoose={(filter) => choose({ filter })}
    />
  );
}

function SpecialChoice({ store: { selection, choose, mutedPart } }: { store: Store }) {
  const { hide_special: hidden } = selection.value;
  return (
    <Check
      name="data-hide-special"
      title="Hide tokens such as [CLS] and [SEP], which often take most of the attention"
      checked={hidden}
      label="hide special tokens"
      onChange={(hide_special) => choose({ hide_special })}
    >
      {hidden && <small data-hidden-part>hides {percent(mutedPart.value)}</small>}
    </Check>
  );
}

function ShareChoice({ store: { selection, choose, step } }: { store: Store }) {
  const share = SHARES[step.value];
  const automatic = selection.value.top_percent === null;
  return (
    <div
      class="choice"
      title="Only the strongest lines of each token and head that make up this share of its attention"
    >
      <label class="choice">
        <span>show top</span>
        <input
          type="range"
          data-top-percent
          min={SHARES[0]}
          max={100}
          step={SHARES[1] - SHARES[0]}
          value={share}
          aria-valuetext={`${share} %`}
          onInput={(event) => {
            const wanted = Number(event.currentTarget.value);
            choose({ top_percent: wanted });
          }}
        />
        <output class="share">{share} % of attention</output>
      </label>
      <button
        class="quiet"
        aria-pressed={automatic}
        title="As many lines as stay legible: about ten per token"
        onClick={() => choose({ top_percent: automatic ? share : null })}
      >
        auto
      </button>
    </div>
  );
}
