import { kindColor, kindOfLabel } from "./kinds";

// A mark for each pattern: told apart by its shape; the colour is that of the kind that it is a label of.

export interface Mark {
  /** A path in a box of 12 x 12. */
  readonly path: string;
  /** Drawn as a line, not filled. */
  readonly hollow: boolean;
  readonly color: string;
}

const RIGHT = "M2.5 1.2 11 6 2.5 10.8Z";
const LEFT = "M9.5 1.2 1 6 9.5 10.8Z";

/** The shape of each pattern that is looked for unless told otherwise. */
const SHAPES: Readonly<Record<string, readonly [path: string, hollow?: true]>> = {
  next: [RIGHT],
  previous: [LEFT],
  same: ["M1 3.2h10M1 8.8h10", true],
  "same-other": ["M1.8 1.8l8.4 8.4M10.2 1.8 1.8 10.2", true],
  delimiter: ["M4.6 1.2h-3v9.6h3M7.4 1.2h3v9.6h-3", true],
  bag: ["M1.6 1.6h8.8v8.8H1.6Z"],
  "positional-next": [RIGHT, true],
  "positional-previous": [LEFT, true],
  "first-token": ["M1 2h10L6 10.8Z", true],
  sink: ["M1 2h10L6 10.8Z"],
  "sink-elsewhere": ["M1 10h10L6 1.2Z", true],
  induction: ["M6 .4 11.6 6 6 11.6.4 6Z"],
  "previous-token": ["M5.4 1.8 1.4 6l4 4.2M10.6 1.8l-4 4.2 4 4.2", true],
};

/** Shapes of users' own patterns, in turn. */
const FURTHER: readonly (readonly [path: string, hollow?: true])[] = [
  ["M6 .8v10.4M.8 6h10.4", true],
  ["M6 .6l1.6 3.6 3.9.4-2.9 2.6.8 3.9L6 9.1l-3.4 2 .8-3.9L.5 4.6l3.9-.4Z"],
  ["M3 1h6l3 5-3 5H3L0 6Z"],
  ["M6 .8 11.2 6 6 11.2.8 6Z", true],
  ["M1.6 1.6h8.8v8.8H1.6Z", true],
];

/** A head without a label. */
export const NO_MARK = "M6 3.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6Z";

/** The mark of each pattern, in their order. */
export function marksOf(patterns: readonly string[], dark: boolean): readonly Mark[] {
  let further = 0;
  return patterns.map((name) => {
    const shape = Object.hasOwn(SHAPES, name) ? SHAPES[name] : FURTHER[further++ % FURTHER.length];
    const [path, hollow = false] = shape;
    return { path, hollow, color: kindColor(kindOfLabel(name) ?? "none", dark) };
  });
}
