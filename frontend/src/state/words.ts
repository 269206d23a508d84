// Numbers as they are printed.

/** ".21", ".004", "<.001": an attention weight in a narrow column. */
export function shortWeight(weight: number): string {
  if (weight >= 0.995) return "1.0";
  if (weight >= 0.0095) return weight.toFixed(2).slice(1);
  if (weight >= 0.0005) return weight.toFixed(3).slice(1);
  return weight > 0 ? "<.001" : "0";
}

/** "31 ×", "1.2 ×", "<.1 ×": how often the even share. */
export function times(multiple: number): string {
  if (multiple > 0 && multiple < 0.05) return "<.1 ×";
  const text = multiple >= 9.95 ? count(Math.round(multiple)) : multiple.toFixed(1).replace(/^0/, "");
  return `${multiple === 0 ? 0 : text} ×`;
}

/** "1.83", ".42", "213": a number that is not below 0 and may be above 1. */
export function amount(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 0.995 ? value.toFixed(2) : shortWeight(value);
}

/** "86 %", and never "0 %" or "100 %" for something in between. */
export function percent(part: number): string {
  if (part > 0 && part < 0.005) return "<1 %";
  if (part < 1 && part >= 0.995) return part >= 0.9995 ? "100 %" : ">99 %";
  return `${Math.round(100 * part)} %`;
}

/** "1,120", without what browsers know of languages: to load that takes longer than to draw the picture. */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 head", "12 heads" */
export function counted(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A bound with two digits, rounded up so that it stays true: ".0039". */
export function bound(error: number): string {
  if (error <= 0) return "0";
  const digits = 1 - Math.floor(Math.log10(error));
  const up = Math.ceil(error * 10 ** digits - 1e-9) / 10 ** digits;
  return up < 1e-4 ? up.toExponential(1) : up.toFixed(digits).replace(/^0\./, ".");
}

/** "2e-6" */
export function magnitude(number: number): string {
  return number === 0 ? "0" : number.toExponential(0);
}

/** "+.21", "−.004", "0": a weight less another. */
export function signedWeight(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${amount(Math.abs(value))}`;
}

/** "1.83", "−0.42", "−∞": a score. */
export function signedNumber(value: number): string {
  const size = Math.abs(value);
  const text = size === Number.POSITIVE_INFINITY ? "∞" : size >= 100 ? size.toFixed(0) : size.toFixed(2);
  return value < 0 && text !== "0.00" ? `−${text}` : text;
}

/** "43 %", "4.8 %", "<0.1 %" */
export function chance(probability: number | undefined): string {
  if (probability === undefined) return "";
  const part = 100 * probability;
  if (part >= 9.95) return `${Math.round(part)} %`;
  return part >= 0.05 ? `${part.toFixed(1)} %` : "<0.1 %";
}

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

const LETTER = /\p{L}/u;
export const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const UPRIGHT = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** Whether most letters of a text are of scripts that are written so. */
function mostly(labels: readonly string[], special: readonly boolean[], script: RegExp): boolean {
  let [all, of] = [0, 0];
  labels.forEach((label, token) => {
    if (special[token]) return;
    for (const letter of label) {
      if (LETTER.test(letter)) all++;
      if (script.test(letter)) of++;
    }
  });
  return 2 * of > all;
}

type Labelled = { readonly labels: readonly string[]; readonly special: readonly boolean[] };

/** The direction in which most of a text is written. */
export function directionOf({ labels, special }: Labelled): "rtl" | "ltr" {
  return mostly(labels, special, RIGHT_TO_LEFT) ? "rtl" : "ltr";
}

/** Whether a text is mostly Chinese or Japanese, of which a token stands well above another. */
export function isUpright({ labels, special }: Labelled): boolean {
  return mostly(labels, special, UPRIGHT);
}

/** A part of an address without its escapes; as it is where they are none. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
