import { eachRun, type Visible } from "./scores";

/** Why a cell has no colour of the scale. A cell that is near zero has one: that of paper. */
export const LOOKS = ["shown", "masked", "out of window", "padded", "no attention", "excluded"] as const;
export type Look = (typeof LOOKS)[number];

/** What decides the look of each cell of a matrix. */
export interface LookRules {
  readonly queries: number;
  readonly keys: number;
  readonly visible: Visible | null;
  /** Keys before the visible ones are out of the window, not masked. */
  readonly sliding: boolean;
  /** 0 for queries that the reader left out. */
  readonly query: Uint8Array;
  /** The look that a key has whatever the query, as place in LOOKS; null where none has one. */
  readonly keyLooks: Uint8Array | null;
}

/** The looks of keys that are padding or that the reader left out. */
export function keyLooks(padded: Uint8Array, shown: Uint8Array): Uint8Array | null {
  const looks = padded.map((pad, key) => (pad ? LOOKS.indexOf("padded") : shown[key] ? 0 : LOOKS.indexOf("excluded")));
  return looks.some((look) => look > 0) ? looks : null;
}

/** The look of each key of a query, as place in LOOKS. */
export function lookRow(rules: LookRules, query: number, out: Uint8Array): Uint8Array {
  const { keys, visible, sliding, keyLooks } = rules;
  if (!rules.query[query]) return out.fill(LOOKS.indexOf("excluded"));
  let first = -1;
  out.fill(LOOKS.indexOf("masked"));
  eachRun(visible, query, keys, (start, end) => {
    if (first < 0) first = start;
    out.fill(0, start, end);
  });
  if (first < 0) out.fill(LOOKS.indexOf("no attention"));
  else if (sliding) out.fill(LOOKS.indexOf("out of window"), 0, first);
  if (keyLooks) for (let key = 0; key < keys; key++) if (keyLooks[key]) out[key] = keyLooks[key];
  return out;
}

/** The looks that a matrix has, but for "shown". */
export function looksOf(rules: LookRules): Look[] {
  const found = new Uint8Array(LOOKS.length);
  const row = new Uint8Array(rules.keys);
  for (let query = 0; query < rules.queries; query++) {
    lookRow(rules, query, row);
    for (let key = 0; key < row.length; key++) found[row[key]] = 1;
  }
  return LOOKS.filter((_, look) => look > 0 && found[look]);
}

/** Padding tokens, by the names that tokenizers give them. */
export function paddedTokens(pieces: readonly string[], special: readonly boolean[]): Uint8Array {
  return Uint8Array.from(pieces, (piece, token) => (special[token] && /^\W*pad\W*$/i.test(piece) ? 1 : 0));
}

/** Where looks have ink: each has a pattern of its own, so that colour alone need not tell. */
const PATTERNS: { readonly [Of in Look]?: (x: number, y: number) => boolean } = {
  "out of window": (x, y) => (x + y) % 7 === 0,
  padded: (x, y) => x % 5 === 0 && y % 5 === 0,
  "no attention": (_, y) => y % 5 === 0,
  excluded: (x, y) => (x + 6 * y) % 7 === 0,
};

export function patternAt(look: number, x: number, y: number): boolean {
  return PATTERNS[LOOKS[look]]?.(x, y) ?? false;
}
