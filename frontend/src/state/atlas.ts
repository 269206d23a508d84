import { CHOICES } from "../../contract/values";
import { type KindName, kindOfLabel } from "../draw/kinds";
import type {
  AtlasHead,
  AtlasIndex,
  AtlasText,
  AtlasTile,
  ComparedScore,
  TreeMetric,
  TreeSequence,
} from "../source/atlas";
import { fromBase64 } from "../source/source";
import { clauseTexts } from "./kinds";
import { decoded, readable } from "./words";

// What an atlas says of heads, found by a word or by a drawing.

/** One of two atlases that are side by side; empty where there is only one. */
export type Side = "" | "a" | "b";

/** Where one is: the map of all heads, with what is looked for; a head; a text as that head sees it. */
export interface AtlasPlace {
  readonly side: Side;
  readonly find: string;
  readonly head: readonly [layer: number, head: number] | null;
  readonly text: number | null;
}

/** What an address says: `#/`, `#/find/it`, `#/head/2-7`, `#/head/2-7/text/12`; of two atlases `#/a/head/2-7`. */
export function readPlace(fragment: string): AtlasPlace {
  const [, of = "", path = ""] = /^#?\/(?:([ab])(?:\/|$))?(.*)$/.exec(fragment) ?? [];
  const side = of as Side;
  const head = /^head\/(\d+)-(\d+)(?:\/text\/(\d+))?$/.exec(path);
  if (head) {
    return { side, find: "", head: [Number(head[1]), Number(head[2])], text: head[3] ? Number(head[3]) : null };
  }
  const find = /^find\/(.+)$/.exec(path);
  return { side, find: find ? decoded(find[1]) : "", head: null, text: null };
}

export function headAddress(layer: number, head: number, text?: number, side: Side = ""): string {
  return `${mapAddress(side)}head/${layer}-${head}${text === undefined ? "" : `/text/${text}`}`;
}

export function findAddress(find: string, side: Side = ""): string {
  return find ? `${mapAddress(side)}find/${encodeURIComponent(find)}` : mapAddress(side);
}

/** The map of all heads. */
export function mapAddress(side: Side = ""): string {
  return side ? `#/${side}/` : "#/";
}

/** One link of a head on a text. */
export type AtlasLink = { readonly query: number; readonly key: number; readonly weight: number };

/** Links that are kept of a text: the strongest of all, and the strongest between words. */
export const LINKS = 24;
export const WORD_LINKS = 16;
const NO_LINK = 65535;

/** The links of a head on one text of the sample, the strongest first; of words alone where that is asked. */
export function linksOn(head: Pick<AtlasHead, "links">, text: number, words = false): AtlasLink[] {
  const bytes = fromBase64(head.links);
  const numbers = new Uint16Array(bytes.buffer);
  const first = 3 * (LINKS + WORD_LINKS) * text + (words ? 3 * LINKS : 0);
  const links = [];
  for (let at = first; at < first + 3 * (words ? WORD_LINKS : LINKS); at += 3) {
    if (numbers[at] !== NO_LINK)
      links.push({ query: numbers[at], key: numbers[at + 1], weight: numbers[at + 2] / 65535 });
  }
  return links;
}

/** A text as a head sees it. */
export interface ShownText {
  /** What the head does, whose hue it has. */
  readonly kind: KindName;
  readonly tokens: readonly { readonly name: string; readonly continues: boolean; readonly special?: boolean }[];
  readonly links: readonly AtlasLink[];
  /** Those whose ends the words are coloured by where none is pointed at, and the one that is marked. */
  readonly ending: readonly AtlasLink[];
  readonly strongest: AtlasLink | undefined;
  /** How much of each row is not kept, where that is known. */
  readonly rest?: readonly number[];
  readonly written: (weight: number) => string;
}

/** A text of the sample of an atlas: the strongest links, of words too, each once. */
export function shownText(
  head: Pick<AtlasHead, "links" | "labels">,
  number: number,
  { words, special }: AtlasText,
): ShownText {
  const [ending, ofWords] = [linksOn(head, number), linksOn(head, number, true)];
  const known = new Set(ending.map(({ query, key }) => `${query} ${key}`));
  return {
    kind: kindOfTile(head),
    tokens: words.map((word, at) => ({
      name: bare(word),
      continues: word !== bare(word),
      special: special.includes(at),
    })),
    links: [...ending, ...ofWords.filter(({ query, key }) => !known.has(`${query} ${key}`))],
    ending,
    strongest: ofWords[0],
    written: shortShare,
  };
}

/** A head that was looked for, and why it is one. */
export type Hit = { readonly at: number; readonly value: number; readonly why: string };

/** The heads that a word says something of, those that it says most of first. */
export function hitsOf(index: AtlasIndex, words: string): Hit[] {
  const find = words.trim().toLowerCase();
  if (!find) return [];
  const hits: Hit[] = [];
  const kind = CHOICES.kind.find((name) => name === find);
  index.heads.forEach((tile, at) => {
    if (kind && kindOfTile(tile) === kind) {
      hits.push({ at, value: 20 + (tile.labels[0]?.score ?? 0), why: kindWhy(tile) });
      return;
    }
    const hit = labelHit(index, tile, find) ?? classHit(index, tile, find) ?? pairHit(tile, find);
    if (hit) hits.push({ at, ...hit });
  });
  return hits.sort((one, other) => other.value - one.value || one.at - other.at);
}

/** The labels that make a head of its kind. */
function kindWhy({ labels }: AtlasTile): string {
  const held = labels.filter(({ holds }) => holds).map(({ name, score }) => `${name} ${shortShare(score)}`);
  return held.join(", ") || "no label of these";
}

type Found = Omit<Hit, "at"> | undefined;

function labelHit({ patterns }: AtlasIndex, { layer, head, labels }: AtlasTile, find: string): Found {
  if (find === `${layer}-${head}`) return { value: 10, why: "its name" };
  const known = new Set(patterns.filter(({ name }) => name.includes(find)).map(({ name }) => name));
  const label = labels.find(({ name }) => known.has(name));
  if (!label) return undefined;
  const why = `${label.name} ${shortShare(label.score)}${label.holds ? "" : " (candidate)"}`;
  return { value: (label.holds ? 6 : 4) + label.score, why };
}

/** Heads that attend to tokens of a class half as much again as even attention does. */
function classHit({ classes }: AtlasIndex, { keys, evenKeys }: AtlasTile, find: string): Found {
  const at = find.length > 2 ? classes.findIndex((name) => name.includes(find)) : -1;
  if (at < 0 || keys[at] < 1.5 * evenKeys[at]) return undefined;
  return { value: 2 + keys[at], why: `${percents(keys[at])} on ${classes[at]} (even ${percents(evenKeys[at])})` };
}

function pairHit({ pairs }: AtlasTile, find: string): Found {
  const pair = pairs.find(([query, key]) => bare(query) === find || bare(key) === find);
  if (!pair) return undefined;
  return { value: pair[2], why: `${bare(pair[0])} → ${bare(pair[1])} ${percents(pair[2])}` };
}

/** A word without the mark of a piece that continues one. */
export function bare(word: string): string {
  return word.length > 2 && word.startsWith("##") ? word.slice(2) : word;
}

/** A share as it is written: 38 %, 3.8 %, 0.38 %. */
export function percents(share: number): string {
  const hundredths = 100 * share;
  if (hundredths > 0 && hundredths < 0.005) return "<0.01 %";
  return `${hundredths.toFixed(hundredths >= 9.95 ? 0 : hundredths >= 0.995 ? 1 : 2)} %`;
}

export function shortShare(share: number | null): string {
  return share === null ? "–" : share.toFixed(2).replace(/^(-?)0\./, "$1.");
}

/** The kind of a head: that of the first label that it holds; what rests comes last, for most heads rest somewhere. */
export function kindOfTile({ labels }: Pick<AtlasTile, "labels">): KindName {
  const kinds = labels.flatMap(({ name, holds }) => (holds ? (kindOfLabel(name) ?? []) : []));
  return kinds.find((kind) => kind !== "resting") ?? kinds[0] ?? "none";
}

/** The clauses of the sentence about all heads of an atlas. */
export function atlasClauses({ heads }: AtlasIndex): { kind: KindName; count: number; text: string }[] {
  const groups = CHOICES.kind.flatMap((kind) => {
    const count = heads.filter((tile) => kindOfTile(tile) === kind).length;
    return count > 0 ? [{ kind, count }] : [];
  });
  const own = (kind: KindName, one: boolean): string | undefined =>
    ({
      resting: one ? "rests on one token" : "rest on one token",
      none: one ? "changes with the text" : "change with the text",
    })[kind as string];
  return clauseTexts(groups).map((text, at) => ({
    ...groups[at],
    text: own(groups[at].kind, groups[at].count === 1) ?? text,
  }));
}

/** Rows of heads by their place, and the number of the layer before each. */
export type GridRows = { readonly layers: readonly number[]; readonly rows: readonly (readonly number[])[] };

/** All heads, a row for each layer. */
export function rowsOf(heads: readonly { readonly layer: number; readonly head: number }[]): GridRows {
  const order = [...heads.keys()].sort((one, other) => heads[one].head - heads[other].head);
  const layers = [...new Set(heads.map(({ layer }) => layer))].sort((one, other) => one - other);
  return { layers, rows: layers.map((layer) => order.filter((at) => heads[at].layer === layer)) };
}

// Two atlases side by side.

export type ComparedSide = Exclude<Side, "">;

/** Whether 0 is outside of the interval of a difference. */
export function isClear([, , , , low, high]: ComparedScore): boolean {
  return low !== null && high !== null && (low > 0 || high < 0);
}

/** Mean weights of B less those of A, from bytes of their roots. */
export function mapDifference(
  a: { maps: Uint8Array; at: number },
  b: { maps: Uint8Array; at: number },
  width: number,
): Float64Array {
  const weight = ({ maps, at }: typeof a, cell: number) => (maps[at * width * width + cell] / 255) ** 2;
  return Float64Array.from({ length: width * width }, (_, cell) => weight(b, cell) - weight(a, cell));
}

// What a tree of HeadVis says of heads and texts.

/** The metric that is looked for, or else the first; undefined of an atlas. */
export function metricOf({ metrics }: AtlasIndex, find: string): TreeMetric | undefined {
  return metrics?.find(({ name }) => name === find) ?? metrics?.[0];
}

/** A metric as maps of one cell each; even the smallest value is coloured a little, since it is known. */
export function metricMaps({ parts }: TreeMetric): Uint8Array {
  return Uint8Array.from(parts, (part) => (part === null ? 0 : 20 + 235 * part));
}

/** Three digits of a number: 0.163, 12.4, 1,830. */
export function digits(value: number | null): string {
  if (value === null) return "–";
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(1);
  return value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 1000 ? 3 : 6 });
}

/** A statistic as the tree wants it written. */
export function statisticText(value: number | string, format: string | null): string {
  if (typeof value === "string") return value;
  if (format === "percent") return percents(value);
  if (format === "integer") return Math.round(value).toLocaleString("en");
  return format === "scientific" ? value.toExponential(2) : digits(value);
}

/** A text of a tree: the largest weights of each row. */
export function treeText({ queries, keys, weights, tokens, rest }: TreeSequence): ShownText {
  const links = queries.map((query, at) => ({ query, key: keys[at], weight: weights[at] }));
  // Position 0 gets most of many heads; readers of HeadVis leave it out, and so does this, but for one query.
  const ending = links.filter(({ query, key }) => query > 0 && key > 0);
  const spaces = spacesBefore(tokens);
  const shown = tokens.map((token, at) => ({ name: tokenName(token), continues: at > 0 && !spaces[at] }));
  return { kind: "none", tokens: shown, links, ending, strongest: ending[0], rest, written: digits };
}

/** "61 % not kept": of a row, or of all rows. */
export function notKeptWords(part: number): string {
  return part < 0.0005 ? "all kept" : `${percents(part)} not kept`;
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** A token by itself: without the space before it, and what cannot be seen written out. */
export function tokenName(token: string): string {
  return readable(bare(token).trim() || token).text;
}

/** Whether a space stands before each token: that of the token, or where no token has one, between words. */
export function spacesBefore(tokens: readonly string[]): boolean[] {
  const marked = tokens.some((token) => /^\s/.test(token));
  return tokens.map((token, at) => at > 0 && (marked ? /^\s/.test(token) : !token.startsWith("##")));
}
