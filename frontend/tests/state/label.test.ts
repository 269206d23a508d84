import { expect, test } from "vitest";
import { quoted, readable } from "../../src/state/words";

test.each([
  "rabbit",
  "</script>",
  "<b>\"quoted'</b>",
  "&amp;",
  "שלום",
  "مرحبا",
  "👩‍👩‍👧",
  "❤️",
  "e\u0301",
  "ن\u200cم",
  "two words",
])("a token that can be seen is shown as it is: %s", (token) => {
  expect(readable(token)).toEqual({ text: token, standIn: false });
});

test.each([
  ["", "·"],
  [" ", "␣"],
  ["   ", "␣␣␣"],
  ["\n", "↵"],
  ["\r\n", "␍↵"],
  ["\t", "⇥"],
  ["\0", "␀"],
  ["\x1b", "␛"],
  ["\x7f", "␡"],
  ["\u0085", "U+0085"],
  ["\uffff", "U+FFFF"],
  ["\u00a0", "U+00A0"],
  ["\u200b", "U+200B"],
  ["\u200d", "U+200D"],
  ["\u202e", "U+202E"],
  ["\u2028", "U+2028"],
  ["\u3000", "U+3000"],
  ["\ufe0f", "U+FE0F"],
  ["\ufeff", "U+FEFF"],
  ["\ud83d", "U+D83D"],
  ["\u{e0041}", "U+E0041"],
])("an invisible token has a stand-in: %j is %s", (token, text) => {
  expect(readable(token)).toEqual({ text, standIn: true });
});

test.each([
  ["a\nb", "a↵b"],
  ["a\0b", "a␀b"],
  ["\u202eevil", "⟨U+202E⟩evil"],
  ["a\u200bb", "a⟨U+200B⟩b"],
  ["x\ud800y", "x⟨U+D800⟩y"],
  ["\u0301", "◌\u0301"],
])("what cannot be seen inside a token is made visible: %j", (token, text) => {
  expect(readable(token)).toEqual({ text, standIn: false });
});

test("a very long token is cut between characters", () => {
  const { text } = readable("😀".repeat(500));
  expect(text).toBe(`${"😀".repeat(200)}…`);
  expect(readable("x".repeat(200)).text).toBe("x".repeat(200));
});

test("a shorter cut does not split a character", () => {
  expect(readable(`${"w".repeat(39)}\u{1f600}\u{1f600}`, 40).text).toBe(`${"w".repeat(39)}\u{1f600}…`);
});

test("what is written from the right turns nothing around its quotation marks", () => {
  expect(quoted("cat")).toBe("“cat”");
  expect(quoted("–قط")).toBe("“\u2068–قط\u2069”");
});
