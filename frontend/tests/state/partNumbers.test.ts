import { expect, test } from "vitest";
import {
  folded,
  foremost,
  inkOf,
  inOrder,
  oddsText,
  partNumbers,
  readAnswer,
  sentencesOf,
  sharesOf,
  shareText,
  strongest,
} from "../../src/state/partNumbers";
import type { AnswerPicture } from "../../types/answer";

const base64 = (values: Float32Array | Uint8Array) =>
  btoa(String.fromCharCode(...new Uint8Array(values.buffer, values.byteOffset, values.byteLength)));
const floats = (...values: number[]) => base64(Float32Array.from(values));
const part = (name: string, level: number, ...runs: number[][]) => ({ name, kind: "document", level, runs });

/** Two words, one head besides the mean; two documents that are compared, and a question. */
function made(changes: Partial<AnswerPicture> = {}): AnswerPicture {
  return {
    title: "",
    theme: "auto",
    model: "",
    facts: "",
    question: "",
    says: [""],
    quantity: "attention",
    mean: "all heads",
    needs: ["parts", "none", "parts"],
    needed: [[1], [], [1]],
    targets: [1],
    gone: "cut off",
    words: ["amber", "falcon"],
    pieces: ["<s>", "One", " two", ".", " Three", "."],
    parts: [part("a", 0, [1, 4]), part("b", 0, [4, 6]), part("question", 0)],
    candidates: [0, 1],
    heads: ["2-0"],
    kinds: ["same"],
    columns: 1,
    // mean: first word, second word; then head 2-0. Behind the parts the first token, the template, the answer.
    shares: floats(
      ...[0.1, 0.3, 0.2, 0.2, 0.2, 0, 0.3, 0.1, 0.2, 0.2, 0.2, 0],
      ...[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
    ),
    even_shares: floats(...[0.2, 0.1, 0.1, 0.2, 0.2, 0.2], ...[0.2, 0.1, 0, 0.2, 0.2, 0.2]),
    logs: floats(...[-0.1, -0.1], ...[-9, -9], ...[-0.1, -0.1], ...[-0.1, -3], ...[-9, -9], ...[-0.1, -0.1]),
    ink: base64(Uint8Array.of(0, 255, 0, 51, 0, 0, 0, 0, 255, 0, 0, 0)),
    tops: floats(0.4, 0.2),
    between: "",
    pictures: [],
    sinks: [],
    tables: "",
    ...changes,
  };
}

const data = readAnswer(made());

test("shares are the mean over the words that are chosen, and lift is among the candidates", () => {
  expect(sharesOf(data, [0, 1])[0]).toBeCloseTo(0.2);
  expect(sharesOf(data, [0], 1)[1]).toBe(1);
  const [one, two, question] = partNumbers(data, [0]);
  expect(one.lift).toBeCloseTo(0.1 / 0.4 / (0.2 / 0.3));
  expect(two.due).toBeCloseTo((0.4 * 0.1) / 0.3);
  expect(question.due).toBeCloseTo(0.1);
  expect(question.lift).toBeNaN();
  expect(question.lost).toBeNaN();
  expect(partNumbers(data, [1])[2].told[0]).toBe("not visible");
});

test("what is needed is of the words that are chosen", () => {
  const all = partNumbers(data, [0, 1]);
  expect(all[1].told).toEqual(["20 % · 1.5 ×", "82 % → 4.5 %"]);
  expect(all[0].told[1]).toBe("as probable");
  expect(partNumbers(data, [0])[1].told[1]).toBe("as probable");
  // What is needed Python says, of the whole answer and of each word, whatever is lost.
  expect([[0, 1], [0], [1]].map((words) => partNumbers(data, words)[1].isNeeded)).toEqual([true, false, true]);
  const judged = readAnswer(made({ needs: ["any", "any", "none"], needed: [[0, 1], [0], []] }));
  const several = partNumbers(judged, [0, 1]);
  expect(several[1].isEnough).toBe(true);
  expect(several[1].told[1]).toBe("alone: 82 %");
  expect([0, 1].map((word) => partNumbers(judged, [word]).map(({ isEnough }) => isEnough))).toEqual([
    [true, false, false],
    [false, false, false],
  ]);
  expect(partNumbers(judged, [1]).some(({ isNeeded }) => isNeeded)).toBe(false);
});

test("numbers are printed as Python prints them", () => {
  expect([0.1234, 0.0995, 0.0994, 0].map(shareText)).toEqual(["12 %", "10 %", "9.9 %", "0.0 %"]);
  expect(oddsText(Math.log(0.0004))).toBe("< 0.1 %");
  expect(oddsText(-20 + Math.log(0.25), -20)).toBe("0.25 of it");
  expect(oddsText(-20 + Math.log(3), -20)).toBe("3 times that");
});

test("ink is attention again, and that of the mean where a head has none", () => {
  expect(inkOf(data, [0])[1]).toBeCloseTo(0.4);
  expect(inkOf(data, [0])[3]).toBeCloseTo(0.4 * 0.2 ** 2);
  expect(inkOf(data, [0, 1])[2]).toBeCloseTo(0.1);
  expect(inkOf(data, [0], 1)).toEqual(inkOf(data, [0]));
});

test("a text is cut into sentences, and one without end is cut, too", () => {
  expect(sentencesOf({ pieces: data.pieces, parts: [part("all", 0, [1, 6])] }, 0)).toEqual([
    [1, 4],
    [4, 6],
  ]);
  const long = { pieces: Array.from({ length: 130 }, () => " word"), parts: [part("all", 0, [0, 130])] };
  expect(sentencesOf(long, 0).map(([first]) => first)).toEqual([0, 60, 120]);
  // The text of a document that has parts of its own stands there.
  const nested = { pieces: data.pieces, parts: [part("a", 0, [1, 6]), part("a, sentence 1", 1, [1, 4])] };
  expect(sentencesOf(nested, 0)).toEqual([]);
});

test("the strongest sentences stay, and short parts are not folded", () => {
  const sentences = [0, 20, 40].map((first) => [first, first + 20] as const);
  const attention = new Float32Array(60);
  attention[25] = 0.5;
  expect([...strongest(sentences, attention, 1)]).toEqual([sentences[1]]);
  expect(strongest(sentences.slice(0, 1), attention, 0).size).toBe(1);
});

test("of many parts the needed and most looked at stay, in the order of the prompt, with what they stand in", () => {
  const parts = [
    part("a", 0, [0, 9]),
    part("b", 0, [9, 12]),
    part("a, sentence 1", 1, [0, 5]),
    part("a, sentence 2", 1, [5, 9]),
  ];
  expect(inOrder(parts)).toEqual([0, 2, 3, 1]);
  const number = (lift: number, lost: number) => ({
    looked: 0,
    due: 0,
    lift,
    lost,
    isNeeded: lost > 0.5,
    isEnough: false,
    told: ["", ""] as const,
  });
  const numbers = [number(Number.NaN, Number.NaN), number(2, 0), number(0.5, 0.9), number(1, 0)];
  expect([...foremost(numbers, parts, 1)].sort()).toEqual([0, 2]);
  expect(folded([0, 2, 3, 1], (at) => at < 3).map(({ shown, of }) => [shown, of])).toEqual([
    [true, [0, 2]],
    [false, [3]],
    [true, [1]],
  ]);
});
