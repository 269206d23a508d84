import type { TreeIndex, TreeMetric, TreeSequence } from "../source/headvis";
import { percents, type ShownText } from "./atlas";

// What a tree of HeadVis says of heads and texts.

/** The metric that an address names, or the first. */
export function readMetric(fragment: string, { metrics }: TreeIndex): TreeMetric | undefined {
  const name = /^#?\/metric\/(.+)$/.exec(fragment)?.[1];
  return metrics.find((metric) => encodeURIComponent(metric.name) === name) ?? metrics[0];
}

export function metricAddress(name: string): string {
  return `#/metric/${encodeURIComponent(name)}`;
}

/** "prev token score": a metric as it is read. */
export function metricWords(name: string): string {
  return name.replaceAll("_", " ");
}

/** Smallest and largest value that is known. */
export function rangeOf(values: readonly (number | null)[]): readonly [number, number] {
  const known = values.filter((value) => value !== null);
  return known.length > 0 ? [Math.min(...known), Math.max(...known)] : [0, 0];
}

/** Where a value lies in a range, from 0 to 1. */
export function partOf(value: number, [low, high]: readonly [number, number]): number {
  return high > low ? (value - low) / (high - low) : 0.5;
}

/** How many heads have more of a metric, and how many have one. */
export function rankOf({ values }: TreeMetric, at: number): readonly [rank: number, of: number] | null {
  const own = values[at];
  if (own === null || own === undefined) return null;
  const known = values.filter((value) => value !== null);
  return [1 + known.filter((value) => value > own).length, known.length];
}

/** Three digits of a number: 0.163, 12.4, 1,830. */
export function digits(value: number | null): string {
  if (value === null) return "–";
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(1);
  return value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 1000 ? 3 : 6 });
}

/** A statistic as the tree wants it written. */
export function statisticText(value: number | string, format: string | undefined): string {
  if (typeof value === "string") return value;
  if (format === "percent") return percents(value);
  if (format === "integer") return Math.round(value).toLocaleString("en");
  return format === "scientific" ? value.toExponential(2) : digits(value);
}

/** A text of a tree: the largest weights of each row. */
export function treeText(sequence: TreeSequence): ShownText {
  const { queries, keys, weights, tokens } = sequence;
  const links = queries.map((query, at) => ({ query, key: keys[at], weight: weights[at] }));
  // Position 0 gets most of many heads; readers of HeadVis leave it out, and so does this, but for one query.
  const ending = links.filter(({ query, key }) => query > 0 && key > 0);
  const spaces = spacesBefore(tokens);
  return {
    tokens: tokens.map((token, at) => ({ name: tokenName(token), continues: at > 0 && !spaces[at] })),
    links: links.sort((one, other) => other.weight - one.weight),
    ending,
    strongest: [...ending].sort((one, other) => other.weight - one.weight)[0],
    rest: notKept(sequence),
    written: digits,
  };
}

/** How much of each row is not kept. */
export function notKept({ tokens, queries, weights }: TreeSequence): number[] {
  const rest = Array<number>(tokens.length).fill(1);
  queries.forEach((query, at) => {
    rest[query] -= weights[at];
  });
  // Weights are rounded, so that a whole row may sum to a little more or less than 1.
  return rest.map((part) => (part < 0.001 ? 0 : part));
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
  const shown = token.replaceAll("\n", "↵").replaceAll("\t", "⇥");
  const bare = shown.length > 2 && shown.startsWith("##") ? shown.slice(2) : shown;
  return bare.trim() || "␣".repeat(Math.max(1, bare.length));
}

/** Whether a space stands before each token: that of the token, or where no token has one, between words. */
export function spacesBefore(tokens: readonly string[]): boolean[] {
  const marked = tokens.some((token) => /^\s/.test(token));
  return tokens.map((token, at) => at > 0 && (marked ? /^\s/.test(token) : !token.startsWith("##")));
}
