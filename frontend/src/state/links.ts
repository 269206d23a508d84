import type { PageLinks, PageSelection, PageWord } from "../contract/page";
import type { Side } from "../draw/columns";
import type { LayerWeights } from "../draw/weights";

/** Which word looks at the other, as in Python's `predicted_heads`. */
export type Direction = PageSelection["link_direction"];

/** What a head chooses for one word that has gold heads. */
export interface Choice {
  readonly word: number;
  /** Mostly one: mentions may have several antecedents. */
  readonly gold: readonly number[];
  readonly label: string;
  /** The word that is chosen as head; -1 where nothing is looked at. */
  readonly chosen: number;
  readonly weight: number;
  readonly hit: boolean;
}

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
export function choicesOf({ words, arcs }: PageLinks, map: Float64Array, direction: Direction): Choice[] {
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
