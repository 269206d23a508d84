import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { CHOICES } from "../../../contract/values";
import type { PageLinks, PageSelection, PageWord } from "../../../types/page";
import type { Side } from "../../draw/tokens";
import type { LayerWeights } from "../../draw/weights";
import { followSize } from "../../parts/canvas";
import { Segmented } from "../../parts/controls";
import { pinPair } from "../../state/selection";
import type { Store } from "../../state/store";
import { counted, percent, readable, shortWeight } from "../../state/words";

const ASKED: Readonly<Record<Direction, string>> = {
  "dep->head": "dependent looks at head",
  "head->dep": "head looks at dependent",
};

/** What the parts of the panel share. */
type LinkParts = ReturnType<typeof linkParts>;

/** Gold links over the words beside what the chosen heads look at most, and both as a list. */
export function LinksPanel({ store, links }: { store: Store; links: PageLinks }) {
  const { link_direction: direction, link_words: filter } = store.selection.value;
  const choices = useComputed(() => {
    const shown = store.shown.value;
    if (shown?.stack.name !== links.stack) return null;
    return choicesOf(
      links,
      wordMap(shown.weights, store.head.value, links.words),
      store.selection.value.link_direction,
    );
  });
  const parts = linkParts(store, links, direction);
  const found = choices.value;
  const [hits, misses] = [true, false].map((wanted) => found?.filter(({ hit }) => hit === wanted) ?? []);
  return (
    <section class="card links" aria-label="Gold links" data-links>
      <div class="view-bar row wrap">
        <strong>{links.tree ? "Gold tree" : "Gold links"}</strong>
        {links.name && <bdi class="view-note muted">{readable(links.name).text}</bdi>}
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
          <div class="view-bar row wrap">
            <Segmented
              label="Which words"
              options={CHOICES.link_words}
              labels={{ both: "all words", hits: `hits ${hits.length}`, misses: `misses ${misses.length}` }}
              chosen={filter}
              onChoose={(option) => store.choose({ link_words: option as typeof filter })}
            />
            <small class="view-note muted">Above gold, below most looked at; dashed: missed. Click to pin.</small>
          </div>
          <ol class="links-list stack" onPointerLeave={() => parts.store.preview({})}>
            {{ both: found, hits, misses }[filter].map((choice) => (
              <Row key={choice.word} parts={parts} choice={choice} />
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function linkParts(store: Store, links: PageLinks, direction: Direction) {
  return {
    store,
    links,
    /** Shows a word and its gold head in all views while the pointer is there. */
    preview: (word: number) => store.preview(pairOf(links, word, direction)),
    // A token -1 is fit away.
    pin: (word: number) =>
      store.select((now) => pinPair(now, { query: -1, key: -1, ...pairOf(links, word, direction) })),
    pinned: (word: number) => {
      const { query, key } = pairOf(links, word, direction);
      return store.pins.value.query[0] === query && store.pins.value.key[0] === key;
    },
  };
}

function told(store: Store, { tree }: PageLinks, [hits, all]: readonly number[], direction: Direction): string {
  const { shown, head } = store;
  const who = `head ${shown.value?.stack.head_numbers[head.value]}`;
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
        class="quiet muted flex left relative"
        aria-pressed={parts.pinned(word)}
        onClick={() => parts.pin(word)}
        onPointerOver={() => parts.preview(word)}
        onFocus={() => parts.preview(word)}
        onBlur={() => parts.store.preview({})}
      >
        <span aria-hidden="true">{hit ? "✓" : "✗"}</span>
        <span class="grow slim">
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

/** Pixels between arcs that run above each other: of the gold ones, which have names, and of the others. */
const [GOLD_STEP, STEP] = [19, 12];
const TIP = 5;

interface Arc extends Ends {
  readonly label: string;
  readonly hit: boolean;
  readonly width: number;
}

interface ArcsProps {
  parts: LinkParts;
  choices: readonly Choice[];
  /** The side on which a dependent is pointed at. */
  side: Side;
}

/** The words in one row, gold links above and what is chosen below. */
function Arcs({ parts, choices, side }: ArcsProps) {
  const { links, store } = parts;
  const row = useRef<HTMLDivElement>(null);
  const middles = useSignal<readonly number[]>([]);
  useLayoutEffect(() => {
    const words = row.current;
    if (!words) return;
    return followSize(words, () => {
      const now = Array.from(words.children, (word) => {
        const { offsetLeft, offsetWidth } = word as HTMLElement;
        return offsetLeft + offsetWidth / 2;
      });
      if (now.join() !== middles.peek().join()) middles.value = now;
    });
  }, [links]);
  const chosenBy = new Map(choices.map(({ word, chosen }) => [word, chosen]));
  const gold = links.arcs.map((arc) => ({ ...arc, hit: chosenBy.get(arc.dependent) === arc.head, width: 1.4 }));
  const chosen = choices
    .filter((choice) => choice.chosen >= 0)
    .map(({ word, chosen: head, weight, hit }) => ({ dependent: word, head, label: "", hit, width: 1 + 2 * weight }));
  const token = store.pair.value[side];
  const active = token === null ? -1 : links.words.findIndex(({ tokens }) => tokens.includes(token));
  const widths = roomFor(gold);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard
    <div class="links-scroll" role="img" aria-label="The same as arcs over and under the words" tabIndex={0}>
      <div class="links-arcs relative" style={{ "--color": store.color.value }} data-active={active >= 0 || undefined}>
        <Half arcs={gold} middles={middles.value} step={GOLD_STEP} active={active} />
        <div class="links-row flex" ref={row} dir="auto" onPointerLeave={() => store.preview({})}>
          {links.words.map(({ label }, word) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut to what the buttons of the list do
            // biome-ignore lint/a11y/useKeyWithClickEvents: the buttons of the list take the keyboard
            <span
              key={word}
              data-word={word}
              onPointerOver={() => parts.preview(word)}
              onClick={() => parts.pin(word)}
              data-active={word === active || undefined}
              style={{ minWidth: widths[word] && `${widths[word]}px` }}
            >
              {readable(label).text}
            </span>
          ))}
        </div>
        <Half arcs={chosen} middles={middles.value} step={STEP} active={active} below />
      </div>
    </div>
  );
}

type HalfProps = { arcs: readonly Arc[]; middles: readonly number[]; step: number; active: number; below?: boolean };

function Half({ arcs, middles, step, active, below = false }: HalfProps) {
  const levels = arcLevels(arcs);
  const height = step * Math.max(1, ...levels) + 2 * TIP + 4;
  if (middles.length === 0) return null;
  return (
    <svg height={height} aria-hidden="true" data-half={below ? "chosen" : "gold"}>
      <g transform={below ? `matrix(1 0 0 -1 0 ${height})` : undefined}>
        {arcs.map(({ dependent, head, label, hit, width }, number) => {
          const [from, to] = [middles[head], middles[dependent]];
          const rise = step * levels[number];
          return (
            <g
              key={number}
              data-arc={`${dependent}-${head}`}
              data-hit={hit || undefined}
              data-active={dependent === active || undefined}
            >
              <path d={arcPath(from, to, rise, height - TIP)} stroke-width={width} />
              <path class="tip" d={`M${to - 3.5} ${height - TIP - 1}h7l-3.5 ${TIP + 1}z`} />
              {label && (
                <text x={(from + to) / 2} y={height - TIP - rise + 3}>
                  {readable(label).text}
                </text>
              )}
            </g>
          );
        })}
      </g>
    </svg>
  );
}

/** Pixels that neighbours need between them for the name of the link that joins them. */
function roomFor(arcs: readonly Arc[]): number[] {
  const room: number[] = [];
  for (const { dependent, head, label } of arcs) {
    if (Math.abs(dependent - head) > 1) continue;
    for (const word of [dependent, head]) room[word] = Math.max(room[word] ?? 0, 6 * label.length + 18);
  }
  return room;
}

/** An arc between two words. */
type Ends = { readonly dependent: number; readonly head: number };

/** How high each arc runs, from 1: above all arcs that it spans or crosses, shorter ones first. */
export function arcLevels(arcs: readonly Ends[]): number[] {
  const spans = arcs.map(({ dependent, head }) => [Math.min(dependent, head), Math.max(dependent, head)]);
  const levels: number[] = [];
  const order = [...arcs.keys()].sort((a, b) => spans[a][1] - spans[a][0] - spans[b][1] + spans[b][0] || a - b);
  for (const arc of order) {
    const [start, end] = spans[arc];
    // Those without a level yet are no entries.
    const under = levels.filter((_, other) => spans[other][0] < end && spans[other][1] > start);
    levels[arc] = 1 + Math.max(0, ...under);
  }
  return levels;
}

/** How far from the middle of a word the arcs to its dependents begin. */
const ASIDE = 5;
const ROUND = 6;

/** An arc as SVG path: from the head up to the height and down to the middle of the dependent, y downwards. */
export function arcPath(head: number, dependent: number, height: number, base: number): string {
  const way = Math.sign(dependent - head);
  const start = head + ASIDE * way;
  const round = Math.min(ROUND, Math.abs(dependent - start) / 2);
  const top = base - height;
  const bend = `${top} ${start + way * round} ${top}`;
  return `M${start} ${base}V${top + round}Q${start} ${bend}H${dependent - way * round}Q${dependent} ${top} ${dependent} ${top + round}V${base}`;
}

/** Which word looks at the other, as in Python's `predicted_heads`. */
export type Direction = PageSelection["link_direction"];

/** What a head chooses for one word that has gold heads; mentions may have several, -1 is chosen where none is looked at. */
export type Choice = ReturnType<typeof choicesOf>[number];

/**
 * Attention between words, axes word, word: the sum over the tokens of the word that is looked at, the mean over those
 * of the word that looks. Tokens of no word take no part.
 */
export function wordMap(weights: LayerWeights, head: number, words: readonly Pick<PageWord, "tokens">[]): Float64Array {
  const map = new Float64Array(words.length ** 2);
  for (const [from, { tokens }] of words.entries()) {
    for (const token of tokens) {
      const row = weights.row(head, token);
      for (const [to, other] of words.entries()) {
        for (const key of other.tokens) map[from * words.length + to] += row[key] / tokens.length;
      }
    }
  }
  return map;
}

/** The head that attention predicts for each word: the other word with the largest value, of equal ones the first. */
export function predictedHeads(map: Float64Array, direction: Direction): { chosen: number; weight: number }[] {
  const size = Math.sqrt(map.length);
  return Array.from({ length: size }, (_, word) => {
    let [chosen, weight] = [-1, 0];
    for (let other = 0; other < size; other++) {
      const value = map[direction === "dep->head" ? word * size + other : other * size + word];
      if (other !== word && value > weight) [chosen, weight] = [other, value];
    }
    return { chosen, weight };
  });
}

/** What is chosen for each word that has a gold head, in the order of the text. */
export function choicesOf({ words, arcs }: PageLinks, map: Float64Array, direction: Direction) {
  const predicted = predictedHeads(map, direction);
  return [...words.keys()].flatMap((word) => {
    const links = arcs.filter(({ dependent }) => dependent === word);
    if (links.length === 0) return [];
    const gold = links.map(({ head }) => head);
    const label = [...new Set(links.map((link) => link.label))].join(", ");
    return [{ word, gold, label, ...predicted[word], hit: gold.includes(predicted[word].chosen) }];
  });
}

/** The side that a dependent is on where it looks, or is looked at. */
export function sideOf(direction: Direction): Side {
  return direction === "dep->head" ? "query" : "key";
}

/** A word and its first gold head, as the tokens that stand for them in the picture; the root alone. */
export function pairOf({ words, arcs }: PageLinks, word: number, direction: Direction): { [Of in Side]?: number } {
  const side = sideOf(direction);
  const head = arcs.find(({ dependent }) => dependent === word)?.head;
  const own = { [side]: words[word].tokens[0] };
  return head === undefined ? own : { ...own, [side === "query" ? "key" : "query"]: words[head].tokens[0] };
}
