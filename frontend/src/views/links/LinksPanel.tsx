import { useComputed } from "@preact/signals";
import type { PageLinks } from "../../contract/page";
import { CHOICES } from "../../contract/values";
import { Segmented } from "../../parts/Segmented";
import { readable } from "../../state/label";
import { type Choice, choicesOf, type Direction, pairOf, sideOf, wordMap } from "../../state/links";
import { pinPair } from "../../state/selection";
import type { Store } from "../../state/store";
import { counted, percent, shortWeight } from "../../state/words";
import { Arcs } from "./Arcs";

const ASKED: Readonly<Record<Direction, string>> = {
  "dep->head": "dependent looks at head",
  "head->dep": "head looks at dependent",
};

/** What the parts of the panel share. */
export interface LinkParts {
  readonly store: Store;
  readonly links: PageLinks;
  /** Shows a word and its gold head in all views while the pointer is there. */
  readonly preview: (word: number) => void;
  /** Pins them. */
  readonly pin: (word: number) => void;
  readonly pinned: (word: number) => boolean;
}

/** Gold links over the words beside what the chosen heads look at most, and both as a list. */
export function LinksPanel({ store, links }: { store: Store; links: PageLinks }) {
  const { link_direction: direction, link_words: filter } = store.selection.value;
  const choices = useComputed(() => {
    const shown = store.shown.value;
    if (shown?.stack.name !== links.stack) return null;
    return choicesOf(
      links,
      wordMap(shown.weights, store.heads.value, links.words),
      store.selection.value.link_direction,
    );
  });
  const parts = linkParts(store, links, direction);
  const found = choices.value;
  const [hits, misses] = [true, false].map((wanted) => found?.filter(({ hit }) => hit === wanted) ?? []);
  return (
    <section class="card links" aria-label="Gold links" data-links>
      <div class="view-bar">
        <strong>{links.tree ? "Gold tree" : "Gold links"}</strong>
        {links.name && <bdi class="view-note">{readable(links.name).text}</bdi>}
        <Segmented
          label="Who looks"
          options={CHOICES.link_direction}
          labels={ASKED}
          chosen={direction}
          onChoose={(option) => store.choose({ link_direction: option as Direction })}
        />
      </div>
      <p aria-live="polite" data-links-told>
        {found
          ? told(store, links, [hits.length, found.length], direction)
          : `These links are within “${links.stack}”.`}
      </p>
      {found && (
        <>
          <Arcs parts={parts} choices={found} side={sideOf(direction)} />
          <div class="view-bar">
            <Segmented
              label="Which words"
              options={CHOICES.link_words}
              labels={{ both: "all words", hits: `hits ${hits.length}`, misses: `misses ${misses.length}` }}
              chosen={filter}
              onChoose={(option) => store.choose({ link_words: option as typeof filter })}
            />
            <small class="view-note">Above gold, below most looked at; dashed: missed. Click to pin.</small>
          </div>
          <ol class="links-list" onPointerLeave={() => parts.store.preview({})}>
            {{ both: found, hits, misses }[filter].map((choice) => (
              <Row key={choice.word} parts={parts} choice={choice} />
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function linkParts(store: Store, links: PageLinks, direction: Direction): LinkParts {
  return {
    store,
    links,
    preview: (word) => store.preview(pairOf(links, word, direction)),
    // A token -1 is fit away.
    pin: (word) => store.select((now) => pinPair(now, { query: -1, key: -1, ...pairOf(links, word, direction) })),
    pinned: (word) => {
      const { query, key } = pairOf(links, word, direction);
      return store.pins.value.query[0] === query && store.pins.value.key[0] === key;
    },
  };
}

function told(store: Store, { tree }: PageLinks, [hits, all]: readonly number[], direction: Direction): string {
  const { shown, heads } = store;
  const { length } = heads.value;
  const who =
    length > 1 ? `the mean of ${counted(length, "head")}` : `head ${shown.value?.stack.head_numbers[heads.value[0]]}`;
  const share = all > 0 ? ` (${percent(hits / all)})` : "";
  const what = direction === "dep->head" ? "look most at their gold head" : "are looked at most by their gold head";
  const rest = tree ? "the root is left out" : "words without a link are left out";
  return `Layer ${shown.value?.layer.layer}, ${who}: ${hits} of ${counted(all, "word")}${share} ${what}; ${rest}.`;
}

/** One word as a sentence: a hit with its gold head, a miss with what was chosen in its place. */
function Row({ parts, choice }: { parts: LinkParts; choice: Choice }) {
  const { word, gold, label, chosen, weight, hit } = choice;
  const name = (at: number) => <bdi>{readable(parts.links.words[at].label).text}</bdi>;
  return (
    <li data-hit={hit || undefined} data-word-choice={`${word}-${chosen}`}>
      <button
        class="quiet"
        aria-pressed={parts.pinned(word)}
        onClick={() => parts.pin(word)}
        onPointerOver={() => parts.preview(word)}
        onFocus={() => parts.preview(word)}
        onBlur={() => parts.store.preview({})}
      >
        <span aria-hidden="true">{hit ? "✓" : "✗"}</span>
        <span class="links-words">
          <span class="spoken">{hit ? "hit: " : "miss: "}</span>
          <b>{name(word)}</b> <small>{readable(label).text}</small> <span class="spoken">of</span>{" "}
          <span aria-hidden="true">→</span> {gold.map((at, place) => [place > 0 && " / ", name(at)])}
          {!hit && <>, not {chosen < 0 ? "any: none is looked at" : name(chosen)}</>}
        </span>
        <span class="number">{shortWeight(weight)}</span>
      </button>
    </li>
  );
}
