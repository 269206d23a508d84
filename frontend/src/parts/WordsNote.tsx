import type { View } from "../state/selection";
import type { Store } from "../state/store";
import { Check } from "./Check";

/** What is measured on pieces, or what of a view follows from their words in another way. */
const FURTHER: { readonly [Of in View]?: string } = {
  overview: " Descriptions of heads and the ten numbers are of the pieces.",
  neuron:
    " Its query and key are means over its pieces, q · k and the score over their pairs; the softmax is the sum and mean of the weights.",
};

/** Where pieces are joined: how. */
export function WordsNote({ store }: { store: Store }) {
  return store.merged.value ? (
    <p class="note muted" data-words-note>
      Whole words: a word gets the sum of what its pieces get, and gives the mean of what they give.
      {FURTHER[store.view.value]}
    </p>
  ) : null;
}

/** Whether pieces are joined, where words have several. */
export function WordsChoice({ store }: { store: Store }) {
  return store.hasPieces.value ? (
    <Check
      name="data-words"
      title="Join the pieces of a word"
      checked={store.selection.value.words}
      label="whole words"
      onChange={(words) => store.choose({ words })}
    />
  ) : null;
}
