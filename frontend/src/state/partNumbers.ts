import type { AnswerPicture } from "../../types/answer";
import { fromBase64 } from "../source/source";

// What the picture of an answer says of each part of the prompt, for some words of the answer and one head or all.

/** Tokens of a sentence from which it is cut, so that a text without ends can be folded. */
const LONG = 60;
/** Tokens of a part up to which nothing of it is folded. */
const SHORT = 30;

/** The arrays of a picture, read. */
export type AnswerData = ReturnType<typeof readAnswer>;

export function readAnswer(picture: AnswerPicture) {
  const floats = (text: string) => new Float32Array(fromBase64(text).buffer);
  const [ink, tokens] = [fromBase64(picture.ink), picture.pieces.length];
  return {
    ...picture,
    ink,
    shares: floats(picture.shares),
    evenly: floats(picture.even_shares),
    logs: floats(picture.logs),
    tops: floats(picture.tops),
    between: floats(picture.between),
    /** Numbers of all words. */
    every: [...picture.words.keys()],
    /** Parts that stand within no other. */
    outer: [...picture.parts.keys()].filter((part) => picture.parts[part].level === 0),
    /** Heads that have ink, the mean among them. */
    inked: ink.length / Math.max(1, picture.words.length * tokens),
  };
}

export interface PartNumbers {
  readonly looked: number;
  /** Share that its length gives among the candidates; of another part among all tokens. */
  readonly due: number;
  /** How many times that; NaN for a part that is not compared. */
  readonly lift: number;
  /** Part of the probability that is lost without it; NaN where it was not cut. */
  readonly lost: number;
  /** Whether it is named as needed, and then whether that is because it is enough alone. */
  readonly isNeeded: boolean;
  readonly isEnough: boolean;
  /** Its share in words, and what is left of the probability without it. */
  readonly told: readonly [looked: string, needed: string];
}

/**
 * Shares of each part, and behind them those of the first token, the template and the answer itself: mean over words.
 * `head` is 0 for the mean over heads, and else its place among the tiles, from 1.
 */
export function sharesOf(data: AnswerData, words: readonly number[], head = 0, values = data.shares): number[] {
  const width = data.parts.length + 3;
  const sums = new Array<number>(width).fill(0);
  for (const word of words) {
    const row = (head * data.words.length + word) * width;
    for (let part = 0; part < width; part++) sums[part] += values[row + part] / words.length;
  }
  return sums;
}

/** What is said of each part. */
export function partNumbers(data: AnswerData, words: readonly number[], head = 0): PartNumbers[] {
  const { candidates } = data;
  const verdict = words.length === data.words.length ? 0 : words[0] + 1;
  const looked = sharesOf(data, words, head);
  const even = sharesOf(data, words, 0, data.evenly);
  const of = (values: readonly number[]) => candidates.reduce((sum, part) => sum + values[part], 0);
  const among = candidates.length > 1 ? of(looked) / of(even) : 1;
  const log = (line: number) => words.reduce((sum, word) => sum + data.logs[line * data.words.length + word], 0);
  const whole = log(0);
  const places = new Map(candidates.map((part, place) => [part, place]));
  return data.parts.map((_, part) => {
    const place = places.get(part) ?? -1;
    const due = place < 0 ? even[part] : among * even[part];
    const [lift, without] = place < 0 ? [Number.NaN, Number.NaN] : [looked[part] / due, log(2 + place)];
    const lost = -Math.expm1(Math.min(0, without - whole));
    const isNeeded = data.needed[verdict].includes(part);
    const isEnough = isNeeded && data.needs[verdict] === "any";
    const share = shareText(looked[part]) + (place < 0 ? "" : ` · ${lift.toFixed(1)} ×`);
    const left = lost < 0.01 ? "as probable" : `${oddsText(whole)} → ${oddsText(without, whole)}`;
    const needed = isEnough ? `alone: ${oddsText(log(2 + candidates.length + place), whole)}` : left;
    const told = [even[part] > 0 ? share : "not visible", needed] as const;
    return { looked: looked[part], due, lift, lost, isNeeded, isEnough, told };
  });
}

/** A share in two digits. */
export function shareText(share: number): string {
  return `${(100 * share).toFixed(share >= 0.0995 ? 0 : 1)} %`;
}

/** A probability as it is read; where the whole is less than a thousandth, as a part of it. */
export function oddsText(log: number, whole = 0): string {
  const least = Math.log(0.001);
  if (whole < least) {
    const times = Math.exp(Math.min(log - whole, 700));
    return `${Number(times.toPrecision(2))} ${times > 1 ? "times that" : "of it"}`;
  }
  return log < least ? "< 0.1 %" : shareText(Math.exp(log));
}

/** Attention to each token of the prompt, mean over words; of the mean over heads where a head has no ink. */
export function inkOf({ ink, tops, words: all, pieces, inked }: AnswerData, words: readonly number[], head = 0) {
  const from = head < inked ? head : 0;
  const attention = new Float32Array(pieces.length);
  for (const word of words) {
    const row = from * all.length + word;
    const scale = tops[row] / (words.length * 255 * 255);
    for (let key = 0; key < attention.length; key++) attention[key] += scale * ink[row * pieces.length + key] ** 2;
  }
  return attention;
}

/** The pictures that a part is: of a video each frame, of a picture that is read as crops each crop. */
export function picturesOf({ pictures, parts }: AnswerData, part: number): AnswerPicture["pictures"] {
  const { kind, runs } = parts[part];
  if (kind !== "picture" && kind !== "frame") return [];
  return pictures.filter(({ keys }) => runs.some(([first, stop]) => keys[0] >= first && keys[0] < stop));
}

/** First and stop of the tokens of a sentence. */
export type Run = readonly [first: number, stop: number];

const ends = new Intl.Segmenter(undefined, { granularity: "sentence" });

/** Whether other parts stand within a part; then its text stands there. */
export function hasInner(parts: AnswerData["parts"], part: number): boolean {
  const { level, runs } = parts[part];
  const isInside = (run: number[]) => runs.some(([first, stop]) => run[0] >= first && run[0] < stop);
  return parts.some((other) => other.level > level && other.runs.some(isInside));
}

/** The sentences of a part; one without end is cut. */
export function sentencesOf({ pieces, parts }: Pick<AnswerData, "pieces" | "parts">, part: number): Run[] {
  if (hasInner(parts, part)) return [];
  return parts[part].runs.flatMap(([first, stop]) => sentencesIn(pieces, first, stop));
}

function sentencesIn(pieces: readonly string[], from: number, to: number): Run[] {
  const text = pieces.slice(from, to).join("");
  const starts = new Set(Array.from(ends.segment(text), ({ index }) => index));
  const sentences: Run[] = [];
  let [first, at] = [from, 0];
  for (let token = from; token < to; token++) {
    const blank = pieces[token].length - pieces[token].trimStart().length;
    const begins = Array.from({ length: blank + 1 }, (_, skip) => at + skip).some((place) => starts.has(place));
    if (token > first && (begins || token - first >= LONG)) {
      sentences.push([first, token]);
      first = token;
    }
    at += pieces[token].length;
  }
  return first < to ? [...sentences, [first, to]] : sentences;
}

/** Which sentences of a part stay where it is folded: the strongest, as they stand; all of a short part. */
export function strongest(sentences: readonly Run[], attention: Float32Array, most: number): ReadonlySet<Run> {
  const tokens = sentences.reduce((sum, [first, stop]) => sum + stop - first, 0);
  if (tokens <= SHORT) return new Set(sentences);
  const top = ([first, stop]: Run) => Math.max(...attention.subarray(first, stop));
  return new Set([...sentences].sort((one, other) => top(other) - top(one)).slice(0, most));
}

/** The parts as they stand in the prompt, each before those within it. */
export function inOrder(parts: AnswerData["parts"]): number[] {
  const first = (part: number) => parts[part].runs[0]?.[0] ?? 0;
  return [...parts.keys()].sort((one, other) => first(one) - first(other) || parts[one].level - parts[other].level);
}

/** Which parts stay where there are many: those that were needed and looked at most, and what they stand in. */
export function foremost(
  numbers: readonly PartNumbers[],
  parts: AnswerData["parts"],
  most: number,
): ReadonlySet<number> {
  const weight = ({ lift, isNeeded }: PartNumbers) => (isNeeded ? 1000 : 0) + (Number.isNaN(lift) ? -1 : lift);
  const ranked = [...numbers.keys()].sort((one, other) => weight(numbers[other]) - weight(numbers[one]));
  const kept = new Set(ranked.slice(0, most));
  const names = [...kept].map((part) => parts[part].name);
  for (const [part, { name }] of parts.entries())
    if (names.some((inner) => inner.startsWith(`${name}, `))) kept.add(part);
  return kept;
}

/** What is shown or not, one after the other, as runs. */
export function folded<Of>(all: readonly Of[], isShown: (of: Of) => boolean): { shown: boolean; of: Of[] }[] {
  const runs: { shown: boolean; of: Of[] }[] = [];
  for (const each of all) {
    const last = runs.at(-1);
    if (last?.shown === isShown(each)) last.of.push(each);
    else runs.push({ shown: isShown(each), of: [each] });
  }
  return runs;
}
