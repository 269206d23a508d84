import type { ComponentChildren } from "preact";
import { CHOICES, VIEWS_WITH } from "../../contract/values";
import { Choice } from "../../parts/Choice";
import { NumbersField } from "../../parts/NumbersField";
import { WordsChoice } from "../../parts/WordsNote";
import type { Store } from "../../state/store";

/** What is put together before it is drawn: pieces to words, several layers, several pinned tokens. */
export function More({ store, children }: { store: Store; children: ComponentChildren }) {
  const { selection, stack, view, choose, hasPieces } = store;
  const now = selection.value;
  const means = VIEWS_WITH.mask.includes(view.value);
  const several = now.query.length > 1 || now.key.length > 1;
  const changed = now.words || now.mean_layers.length > 0 || now.pinned !== "mean" || now.layout !== "auto";
  if (!children && !means && !(hasPieces.value && view.value !== "scatter")) return null;
  return (
    <details class="more" data-changed={changed || undefined}>
      <summary data-more>more</summary>
      <div class="card">
        {children}
        {view.value !== "scatter" && <WordsChoice store={store} />}
        {means && stack.value.layers.length > 1 && (
          <NumbersField
            label="average with layers"
            title="Show the mean of this layer and others, such as 0, 2-4; empty for this layer alone"
            known={stack.value.layers.map(({ layer }) => layer)}
            chosen={now.mean_layers}
            placeholder="none"
            onChoose={(layers) => choose({ mean_layers: [...layers] })}
          />
        )}
        {means && several && (
          <Choice
            label="pinned tokens"
            name="data-pinned"
            options={CHOICES.pinned}
            chosen={now.pinned}
            onChoose={(pinned) => choose({ pinned })}
          />
        )}
        {view.value === "head" && (
          <Choice
            label="tokens in"
            name="data-layout"
            options={CHOICES.layout}
            chosen={now.layout}
            onChoose={(layout) => choose({ layout })}
          />
        )}
      </div>
    </details>
  );
}
