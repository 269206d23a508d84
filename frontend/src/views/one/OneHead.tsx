import { useComputed } from "@preact/signals";
import type { ComponentType } from "preact";
import type { PageStack } from "../../contract/page";
import { VIEWS_WITH } from "../../contract/values";
import { HeadCard } from "../../parts/HeadCard";
import type { ViewParts } from "../../parts/mount";
import { QuantityNote } from "../../parts/QuantityNote";
import { Segmented } from "../../parts/Segmented";
import { WordsNote } from "../../parts/WordsNote";
import { DRAWINGS, type Drawing, drawingsOf, FEW_QUERIES } from "../../state/places";
import type { View } from "../../state/selection";
import type { Store } from "../../state/store";
import { HeadView } from "../head/HeadView";
import { LongText, SentenceCard } from "../long/LongText";
import { SentenceMap } from "../long/SentenceMap";
import { MatrixView } from "../matrix/MatrixView";
import { NeuronView } from "../neuron/NeuronView";
import { TextView } from "../text/TextView";
import { Headline } from "./Headline";
import { HeadMap } from "./HeadMap";
import { PinCard } from "./PinCard";

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
    <div class="body" data-view={view}>
      <div class="beside">
        <HeadMap store={store} />
        {!VIEWS_WITH.wide.includes(view) && (long ? <SentenceCard store={store} /> : <PinCard store={store} />)}
        <HeadCard store={store} />
      </div>
      <section class="card stage" id="view" role="tabpanel" aria-label="One head">
        <Headline store={store}>
          <DrawingChoice store={store} />
        </Headline>
        <div class={beside ? "with-text" : undefined}>
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
      onChoose={(chosen) => {
        const view = chosen as View;
        const { query, key } = store.selection.value;
        const { kinds, query: tokens } = store.stack.value;
        // In a causal text the last token is the one that predicts.
        const opens = view === "text" && kinds?.causal && query.length + key.length === 0;
        store.choose({
          view,
          ...(opens && { query: [store.pieceAt({ side: "query", token: tokens.labels.length - 1 })] }),
        });
      }}
    />
  );
}
