import type { KindName } from "../draw/kinds";
import { isPicture } from "../draw/patches";
import { type LayerValues, rankCorrelation } from "../draw/values";
import type { LoadedKinds } from "../source/heads";
import { quoted as inMarks, readable } from "./words";

// What each head does on this text, in words. Nothing here is a label: that takes many texts.

/** Kinds that are patterns, of which a page opens on the clearest. */
const PATTERNS: readonly KindName[] = ["next", "previous", "same"];

/** The numbers of one head by name. */
export type NumberOf = (name: string) => number;

export function numbersOf({ said, values }: LoadedKinds, head: number): NumberOf {
  const count = said.columns.length;
  return (name) => {
    const column = said.columns.indexOf(name);
    return column < 0 ? Number.NaN : values[head * count + column];
  };
}

/** The kind of a head; null while it is still to come, and for heads that a layer does not have. */
export function kindOf(kinds: LoadedKinds, head: number): KindName | null {
  const here = hereOf(kinds, head);
  return here && kinds.over ? (kinds.over.kinds[head] as KindName) : here;
}

/** The same, "none" where it is not known. */
export function kindAt(kinds: LoadedKinds | null, head: number): KindName {
  return (kinds && kindOf(kinds, head)) ?? "none";
}

/** The kind of a head on this text alone. */
export function hereOf(kinds: LoadedKinds, head: number): KindName | null {
  return kinds.said.kinds[numbersOf(kinds, head)("kind")] ?? null;
}

/** The heads of each kind that there is, the clearest first, in the order in which kinds are listed. */
export function headsByKind(kinds: LoadedKinds): readonly { kind: KindName; heads: readonly number[] }[] {
  const count = kinds.values.length / kinds.said.columns.length;
  const all = Array.from({ length: count }, (_, head) => kindOf(kinds, head));
  return kinds.said.kinds.flatMap((kind) => {
    const heads = [...all.keys()].filter((head) => all[head] === kind);
    return heads.length > 0 ? [{ kind, heads: clearestFirst(kinds, heads) }] : [];
  });
}

/** Heads by their score; with evidence those that do here what they do over many texts come first. */
function clearestFirst(kinds: LoadedKinds, heads: readonly number[]): number[] {
  const { over } = kinds;
  const sorted = byNumber(kinds, heads, "score");
  if (!over) return sorted;
  const agrees = (head: number) => (hereOf(kinds, head) === kindOf(kinds, head) ? 1 : 0);
  return sorted.sort((a, b) => agrees(b) - agrees(a) || over.scores[b] - over.scores[a]);
}

/** Heads in the order of a number, the highest first. */
export function byNumber(kinds: LoadedKinds, heads: readonly number[], name: string): number[] {
  const values = new Map(heads.map((head) => [head, numbersOf(kinds, head)(name) || 0]));
  const value = (head: number) => values.get(head) ?? 0;
  return [...heads].sort((a, b) => value(b) - value(a) || a - b);
}

/** The head that a page opens on: the one with the clearest pattern, of all layers or of one; null where it has none. */
export function clearestHead(kinds: LoadedKinds, row: number | null = null): number | null {
  const inside = (head: number) => row === null || Math.floor(head / kinds.stack.heads) === row;
  const groups = headsByKind(kinds).map(({ kind, heads }) => ({ kind, heads: heads.filter(inside) }));
  // What rests or spreads says least about a text.
  for (const wanted of [PATTERNS, ["own"], ["near"], ["none"], ["broad"], ["resting"]]) {
    const first = groups.filter(({ kind }) => wanted.includes(kind)).flatMap(({ heads }) => heads.slice(0, 1));
    if (first.length > 0) return byNumber(kinds, first, "score")[0];
  }
  return null;
}

/** The head that goes along another text most: where each token looks most comes ever later; null where none does. */
export function aligningHead(thumbs: LayerValues, special: readonly boolean[]): number | null {
  let [found, most] = [null as number | null, LEAST_ALIGNED];
  const words = [...special.keys()].filter((key) => !special[key]);
  for (let head = 0; head < thumbs.heads; head++) {
    const looked: number[] = [];
    for (let query = 0; query < thumbs.queries; query++) {
      const row = thumbs.row(head, query);
      const top = words.reduce((best, key) => (row[key] > row[best] ? key : best), words[0] ?? 0);
      // A query that rests looks at no word.
      if (row[top] > 1) looked.push(top);
    }
    const rank = rankCorrelation([...looked.keys()], looked);
    const score = Number.isNaN(rank) ? 0 : (rank * looked.length) / thumbs.queries;
    if (score > most) [found, most] = [head, score];
  }
  return found;
}

/** How well ranks must agree, times the part of the queries that look at a word. */
const LEAST_ALIGNED = 0.35;

/** The clearest head of each kind, six at most: those that rest, spread or do none of these come last. */
export function clearestOfEach(kinds: LoadedKinds, most = 6): { kind: KindName; head: number }[] {
  const groups = headsByKind(kinds).filter(({ kind }) => kind !== "none");
  const kept = groups.length > most ? groups.filter(({ kind }) => kind !== "near") : groups;
  return kept.slice(0, most).map(({ kind, heads }) => ({ kind, head: heads[0] }));
}

/** ".9998", ".58", ".004": as many digits as tell it from 0 and 1; "–" where it has no meaning here. */
export function shareText(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (value >= 0.99995) return "1";
  if (value < 0.0005) return "0";
  return value.toFixed(value > 0.995 ? 4 : value < 0.0095 ? 3 : 2).replace(/^0/, "");
}

/** What a head does, and the second line: how much, and the one thing that the number hides. */
export type HeadWords = { readonly does: string; readonly more: string };

/** A link between two words is named beside resting or spreading from this weight on. */
const CLEAR_LINK = 0.3;
/** Above this a next or previous head is sharp enough that what leaves the pattern is worth a word. */
const SHARP = 0.9;

export function headWords(kinds: LoadedKinds, head: number): HeadWords {
  const kind = kindOf(kinds, head);
  const of = numbersOf(kinds, head);
  const words: Readonly<Record<KindName, () => HeadWords>> = {
    next: () => ({ does: "looks at the next token", more: neighbourLine(kinds, of, "next") }),
    previous: () => ({ does: "looks at the previous token", more: neighbourLine(kinds, of, "previous") }),
    same: () => sameWords(kinds, of),
    own: () => ({ does: "stays in its own sentence", more: ownLine(of) }),
    near: () => ({
      does: "stays nearby",
      more: `${percentText(of("near"))} of what goes to words stays within 2 tokens${restPart(kinds, of)}`,
    }),
    broad: () => ({
      does: "spreads broadly",
      more: `as if evenly over ${of("keys").toFixed(1)} of ${of("seen").toFixed(0)} tokens${clearLink(kinds, of)}`,
    }),
    resting: () => {
      const places = restNames(kinds, head);
      const amount = isOnSpecial(of) ? of("special") : of("top");
      return {
        does: `rests on ${places.join(" and ")}`,
        more: `${shareText(amount)} of what ${givers(kinds)} give${clearLink(kinds, of)}`,
      };
    },
    none: () => ({
      does: changing(kinds, 0) ?? "does none of these",
      more: strongestLink(kinds, of),
    }),
  };
  return kind ? words[kind]() : { does: "", more: "" };
}

function neighbourLine(kinds: LoadedKinds, of: NumberOf, name: string): string {
  const where = Number.isNaN(of("own")) ? `of what ${givers(kinds)} give` : "inside sentences";
  const rest = of(name) > SHARP ? leaver(kinds, of) : restPart(kinds, of);
  return `${shareText(of(name))} ${where}${rest}`;
}

function sameWords(kinds: LoadedKinds, of: NumberOf): HeadWords {
  const [same, itself] = [of("same"), of("itself")];
  if (Number.isNaN(same) || itself > same) {
    return {
      does: "looks at the token itself",
      more: `${shareText(itself)} of what ${givers(kinds)} give${restPart(kinds, of)}`,
    };
  }
  const most = link(kinds, of("same_query"), of("same_key"), of("same_link"));
  return { does: "finds the same word elsewhere", more: `${shareText(same)} where a word comes twice; most ${most}` };
}

function ownLine(of: NumberOf): string {
  const [own, distance, even] = ["own", "own_by_distance", "own_even"].map((name) => percentText(of(name)));
  return `${own} of what goes to words (${distance} for its distances, ${even} by chance)`;
}

/** What a pattern leaves to special tokens, where that is worth a word. */
function restPart(kinds: LoadedKinds, of: NumberOf): string {
  if (of("special") < 0.15) return "";
  const names = placesOf(of).map((token) => quoted(kinds, token));
  return names.length > 0 ? `; ${shareText(of("special"))} rests on ${names.join(" and ")}` : "";
}

function clearLink(kinds: LoadedKinds, of: NumberOf): string {
  return of("link") >= CLEAR_LINK ? `; ${strongestLink(kinds, of)}` : "";
}

function strongestLink(kinds: LoadedKinds, of: NumberOf): string {
  if (of("link_query") < 0) return "";
  const between = isPicture(kinds.stack.query) ? "" : " between words";
  return `strongest link${between} ${link(kinds, of("link_query"), of("link_key"), of("link"))}`;
}

/** The special token whose row leaves a sharp pattern. */
function leaver(kinds: LoadedKinds, of: NumberOf): string {
  const [query, key, weight] = [of("leaver_query"), of("leaver_key"), of("leaver")];
  if (!(weight > 0.5) || Math.abs(query - key) <= 1) return "";
  return `; ${quotedQuery(kinds, query)} leaves the pattern (to ${quoted(kinds, key)}, ${shareText(weight)})`;
}

function isOnSpecial(of: NumberOf): boolean {
  return of("special") >= 0.5;
}

function placesOf(of: NumberOf): number[] {
  return [of("rest_key"), of("rest_other")].filter((token) => token >= 0);
}

/** Where a resting head rests, as it is written. */
export function restNames(kinds: LoadedKinds, head: number): string[] {
  const of = numbersOf(kinds, head);
  const tokens = isOnSpecial(of) ? placesOf(of) : [of("top_key")];
  return tokens.map((token) => quoted(kinds, token));
}

function link(kinds: LoadedKinds, query: number, key: number, weight: number): string {
  return `${quotedQuery(kinds, query)} → ${quoted(kinds, key)} ${shareText(weight)}`;
}

function quotedQuery({ stack }: LoadedKinds, token: number): string {
  return inQuotes(stack.query, token);
}

function quoted({ stack, said }: LoadedKinds, token: number): string {
  const text = inQuotes(stack.key, token);
  return said.causal && token === 0 && !stack.key.special[0] ? `the first token ${text}` : text;
}

/** Special tokens as they are, words in quotation marks, pieces inside a word with a dash. */
function inQuotes(tokens: LoadedKinds["stack"]["key"], token: number): string {
  const { text } = readable(tokens.labels[token] ?? "", 24);
  if (tokens.special[token]) return text;
  return inMarks(`${tokens.continues[token] ? "–" : ""}${text}`);
}

function percentText(value: number): string {
  return `${Math.round(100 * value)} %`;
}

const CLAUSES: Readonly<Record<KindName, readonly [one: string, many: string]>> = {
  next: ["looks at the next token", "look at the next token"],
  previous: ["at the previous", "at the previous"],
  same: ["at the same word", "at the same word"],
  own: ["stays in its sentence", "stay in their sentence"],
  near: ["stays nearby", "stay nearby"],
  broad: ["spreads broadly", "spread broadly"],
  resting: ["rests on", "rest on"],
  none: ["does none of these", "do none of these"],
};
/** The clause that the shorter ones continue. */
const FULL: Partial<Record<KindName, readonly [one: string, many: string]>> = {
  previous: ["looks at the previous token", "look at the previous token"],
  same: ["looks at the same word", "look at the same word"],
};

/** What so many heads of each kind do, each a clause of one sentence: "look at the next token", "at the previous". */
export function clauseTexts(groups: readonly { readonly kind: KindName; readonly count: number }[]): string[] {
  let verb = false;
  return groups.map(({ kind, count }) => {
    const looks = PATTERNS.includes(kind);
    const words = looks && !verb ? (FULL[kind] ?? CLAUSES[kind]) : CLAUSES[kind];
    verb ||= looks;
    return words[count === 1 ? 0 : 1];
  });
}

/** The sentence about all heads, a clause for each kind that there is: "7 look at the next token", "6 at the previous". */
export function clausesOf(kinds: LoadedKinds) {
  const groups = headsByKind(kinds).map(({ kind, heads }) => ({ kind, heads, count: heads.length }));
  return clauseTexts(groups).map((words, at) => {
    const { kind, heads, count } = groups[at];
    const text = (kind === "none" ? changing(kinds, count === 1 ? 0 : 1) : undefined) ?? words;
    return { kind, count, text: kind === "resting" ? restingText(kinds, heads, text) : text };
  });
}

function givers({ stack }: LoadedKinds): string {
  return isPicture(stack.query) ? "patches" : "words";
}

/** What heads without a kind do: of many texts, or of a picture. */
function changing({ over, stack }: LoadedKinds, form: 0 | 1): string | undefined {
  const verb = ["changes", "change"][form];
  if (over) return `${verb} with the text`;
  return isPicture(stack.query) ? `${verb} from patch to patch` : undefined;
}

function restingText(kinds: LoadedKinds, heads: readonly number[], text: string): string {
  if (isPicture(kinds.stack.key))
    return heads.length === 1 ? "looks at the same few patches" : "look at the same few patches";
  return `${text} ${targets(kinds, heads)}`;
}

/** Where resting heads rest: names that at least one in twenty has, three at most. */
function targets(kinds: LoadedKinds, heads: readonly number[]): string {
  const counts = new Map<string, number>();
  for (const head of heads) for (const name of restNames(kinds, head)) counts.set(name, (counts.get(name) ?? 0) + 1);
  const names = [...counts]
    .sort(([, a], [, b]) => b - a)
    .filter(([, count]) => count >= 0.05 * heads.length)
    .slice(0, 3)
    .map(([name]) => name);
  return names.length > 1
    ? `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`
    : (names[0] ?? "one token");
}
