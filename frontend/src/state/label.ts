import { RIGHT_TO_LEFT } from "./script";

/** A token as it is shown. */
export interface Label {
  readonly text: string;
  /** True where the token itself cannot be seen and the text stands for it. */
  readonly standIn: boolean;
}

/** Longer labels are cut; the tooltip has the whole text. */
const LONGEST = 200;

const SIGNS: Readonly<Record<string, string>> = { "\n": "↵", "\t": "⇥", "\x7f": "␡" };

// Characters that change the order of others or are never seen. Joiners and variation selectors are left alone
// inside a label: emoji and many scripts are written with them.
const NEVER_SEEN =
  /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const ALONE_NOT_SEEN =
  /^(?:[\p{Z}\p{Cf}\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}\u115f\u1160\u3164\uffa0\u2800]|\p{Variation_Selector})*$/u;
const ONLY_MARKS = /^\p{M}+$/u;

/** In quotation marks; what is written from the right turns nothing around it. */
export function quoted(text: string): string {
  return `“${RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text}”`;
}

/** What a reader sees of a token that may hold anything. */
export function readable(token: string, longest = LONGEST): Label {
  // Such as a further byte of the letter before it.
  if (token === "") return { text: "·", standIn: true };
  const shown = cut(token, longest);
  if (ALONE_NOT_SEEN.test(shown)) return { text: Array.from(shown, sign).join(""), standIn: true };
  if (ONLY_MARKS.test(shown)) return { text: `◌${shown}`, standIn: false };
  return { text: shown.replace(NEVER_SEEN, (character) => sign(character).replace(/^U.*/, "⟨$&⟩")), standIn: false };
}

function sign(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === " ") return "␣";
  if (character in SIGNS) return SIGNS[character];
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function cut(text: string, longest: number): string {
  const characters = Array.from(text.slice(0, 2 * longest + 2));
  return characters.length > longest ? `${characters.slice(0, longest).join("")}…` : text;
}
