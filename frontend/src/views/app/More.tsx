import type { ComponentChildren } from "preact";
import { CHOICES, VIEWS_WITH } from "../../contract/values";
import { type Filter, hasSpecial, isPair } from "../../draw/mask";
import { Check } from "../../parts/Check";
import { Choice } from "../../parts/Choice";
import { QuantityChoice } from "../../parts/QuantityChoice";
import { WordsChoice } from "../../parts/WordsNote";
import { readable } from "../../state/label";
import type { Store } from "../../state/store";
import { percent } from "../../state/words";

const FILTER_WORDS: Readonly<Record<Filter, string>> = {
  all: "all tokens",
  aa: "within A",
  ab: "from A to B",
  ba: "from B to A",
  bb: "within B",
};

/** What changes the numbers: the quantity, words in place of pieces, tokens that are left out; and what is done with all. */
export function More({ store, children }: { store: Store; children: ComponentChildren }) {
  const { selection, stack, view, choose, quantities } = store;
  const now = selection.value;
  const masked = VIEWS_WITH.mask.includes(view.value) && !stack.value.sentences;
  const several = now.query.length > 1 || now.key.length > 1;
  const changed = now.words || now.filter !== "all" || now.hide_special || !now.sinks || now.quantity !== "weight";
  return (
    <details class="more" data-changed={changed || undefined}>
      <summary
        class="icon"
        data-menu
        aria-label="More: what is shown, figures, colours"
        title="What is shown, figures, colours"
      >
        ⋯
      </summary>
      <div class="card">
        {quantities.value.length > 1 && !stack.value.sentences && <QuantityChoice store={store} />}
        <WordsChoice store={store} />
        {masked && isPair(stack.value) && (
          <Choice
            label="Which tokens"
            title="A is the first text, B the second: show only the attention within one or between them"
            name="data-filter"
            options={CHOICES.filter}
            words={FILTER_WORDS}
            chosen={now.filter}
            onChoose={(filter) => choose({ filter })}
          />
        )}
        {masked && hasSpecial(stack.value) && <SpecialChoice store={store} />}
        {masked && <SinkChoice store={store} />}
        {masked && several && (
          <Choice
            label="pinned tokens"
            name="data-pinned"
            options={CHOICES.pinned}
            chosen={now.pinned}
            onChoose={(pinned) => choose({ pinned })}
          />
        )}
        {children}
      </div>
    </details>
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

/** Keys that take most of the mass, and the choice to leave them out. */
function SinkChoice({ store }: { store: Store }) {
  const [sinks, stack] = [store.sinks.value, store.shownStack.value];
  if (!stack || sinks.length === 0) return null;
  const names = sinks.map(({ key, part }) => `${readable(stack.key.labels[key]).text} ${percent(part)}`).join(", ");
  const weights = store.quantity.value.name === "weight";
  return (
    <Check
      name="data-without-sinks"
      title={weights ? "Exclude these keys and renormalise the rest of each row" : "Exclude these keys"}
      checked={!store.keepSinks.value}
      label={`exclude keys that get most (${names})`}
      onChange={(without) => store.choose({ sinks: !without })}
    />
  );
}
