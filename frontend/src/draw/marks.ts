// A mark for each pattern: told apart by its shape; the colour, one for each family of patterns, only helps.

export interface Mark {
  /** A path in a box of 12 x 12. */
  readonly path: string;
  /** Drawn as a line, not filled. */
  readonly hollow: boolean;
  readonly color: string;
}

const RIGHT = "M2.5 1.2 11 6 2.5 10.8Z";
const LEFT = "M9.5 1.2 1 6 9.5 10.8Z";

type Family = keyof typeof LIGHT;

const LIGHT = {
  next: "#1668b0",
  previous: "#b94a00",
  same: "#007a55",
  delimiter: "#8a3fa0",
  bag: "#0b7285",
  sink: "#5a6069",
  induction: "#b0235f",
  other: "#756200",
};
const DARK: typeof LIGHT = {
  next: "#6db3ff",
  previous: "#ff9a4d",
  same: "#3fd0a0",
  delimiter: "#cf8ff0",
  bag: "#57d3e6",
  sink: "#b4bac4",
  induction: "#ff7fb5",
  other: "#d9c74a",
};

/** The shape of each pattern that is looked for unless told otherwise. */
const SHAPES: Readonly<Record<string, readonly [family: Family, path: string, hollow?: true]>> = {
  next: ["next", RIGHT],
  previous: ["previous", LEFT],
  same: ["same", "M1 3.2h10M1 8.8h10", true],
  "same-other": ["same", "M1.8 1.8l8.4 8.4M10.2 1.8 1.8 10.2", true],
  delimiter: ["delimiter", "M4.6 1.2h-3v9.6h3M7.4 1.2h3v9.6h-3", true],
  bag: ["bag", "M1.6 1.6h8.8v8.8H1.6Z"],
  "positional-next": ["next", RIGHT, true],
  "positional-previous": ["previous", LEFT, true],
  "first-token": ["sink", "M1 2h10L6 10.8Z", true],
  sink: ["sink", "M1 2h10L6 10.8Z"],
  "sink-elsewhere": ["sink", "M1 10h10L6 1.2Z", true],
  induction: ["induction", "M6 .4 11.6 6 6 11.6.4 6Z"],
  "previous-token": ["previous", "M5.4 1.8 1.4 6l4 4.2M10.6 1.8l-4 4.2 4 4.2", true],
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
  const colors = dark ? DARK : LIGHT;
  let further = 0;
  return patterns.map((name) => {
    if (Object.hasOwn(SHAPES, name)) {
      const [family, path, hollow = false] = SHAPES[name];
      return { path, hollow, color: colors[family] };
    }
    const [path, hollow = false] = FURTHER[further++ % FURTHER.length];
    return { path, hollow, color: colors.other };
  });
}
