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

interface Labelled {
  readonly labels: readonly string[];
  readonly special: readonly boolean[];
}

/** The direction in which most of a text is written. */
export function directionOf({ labels, special }: Labelled): "rtl" | "ltr" {
  return mostly(labels, special, RIGHT_TO_LEFT) ? "rtl" : "ltr";
}

/** Whether a text is mostly Chinese or Japanese, of which a token stands well above another. */
export function isUpright({ labels, special }: Labelled): boolean {
  return mostly(labels, special, UPRIGHT);
}
