import { expect, test } from "vitest";
import { keepsText, leadsTo, linesOf, placedWhy, readWhy, signedShare } from "../../src/views/why/place";
import type { WhyPicture } from "../../types/why";

interface Line {
  name: string;
  link?: [layer: number, head: number, query: number, key: number];
  carried?: number;
  measured?: number;
  later?: number;
}

/** Two layers, from the first word to the second and from there to the last; further lines are in the second graph. */
function picture(words: number, more: readonly Line[] = [], changes: Partial<WhyPicture> = {}): WhyPicture {
  const last = words - 1;
  const all: Line[] = [
    { name: "1-0", link: [1, 0, last, 1], carried: 0.4, measured: -0.5 },
    { name: "0-1", link: [0, 1, 1, 0] },
    ...more,
  ];
  const links = all.map(({ link }, at) => link ?? [0, at, 1, 0]);
  return {
    ...{ title: "", theme: "auto", model: "", answer: "x", probability: 0.9, says: ["", ""], tables: "", chosen: 0 },
    ...{ tokens: Array.from({ length: words }, (_, at) => `w${at}`), position: last, sources: 0, parts: [] },
    ...{ words: Array(words + 1).fill(1 / (words + 1)), part_of: Array(words).fill(-1), rows: ["layer 0", "layer 1"] },
    ...{ links, row_of: links.map(([layer]) => [layer, layer + 1]), names: all.map(({ name }) => name) },
    ...{
      kinds: all.map(() => "previous"),
      weights: all.map(() => 0.9),
      graph_of: all.map((_, at) => (at < 2 ? 0 : 1)),
    },
    shares: all.map(({ carried = 0.2, measured = -0.3, later = -0.01 }) => [carried, 0.1, measured, later]),
    stages: [
      ["self", 0],
      ["self", 1],
    ],
    ...{ sizes: [2, 3], keeps: [0.91, 1.1] },
    drawn: [
      [-0.1, 0.006, 0.2],
      [0, 0.0004, 0.5],
    ],
    ...changes,
  };
}

const made = (words: number, ...more: Line[]) => readWhy(picture(words, more));

test("each token of a short text is a column, which carries what it carries", () => {
  const { columns, lines, at } = made(3);
  expect(columns.map(({ label, carried }) => `${label} ${carried}`)).toEqual(["w0 0.25", "w1 0.25", "w2 0.25"]);
  expect([at, ...lines.map(({ key, query }) => `${key} ${query}`)]).toEqual([2, "1 2", "0 1"]);
});

test("columns of a long text are its parts, and tokens that lines touch", () => {
  const of = (at: number) => (at >= 10 && at < 40 ? 0 : -1);
  const parts = { parts: ["document 1"], part_of: Array.from({ length: 80 }, (_, at) => of(at)) };
  const { columns, lines } = readWhy(picture(80, [{ name: "0-2", link: [0, 2, 20, 12] }], parts));
  const named = columns.map(({ label, tokens }) => `${label} ${tokens}`);
  expect(named).toEqual(["w0 1", "w1 1", "… 8", "document 1 30", "… 39", "w79 1"]);
  expect([lines[2].key, lines[2].query, lines[2].words]).toEqual([3, 3, ["w12", "w20"]]);
  expect(columns.reduce((sum, { carried }) => sum + carried, 0)).toBeCloseTo(80 / 81);
});

test("what a decoder reads begins above its encoder", () => {
  const rows = ["encoder 0", "encoder 1", "decoder 0"];
  const { columns } = readWhy(picture(4, [], { sources: 2, rows }));
  expect(columns.map(({ bottom }) => bottom)).toEqual([0, 0, 2, 2]);
});

test("a line acts by looking where most of its change goes with later looking", () => {
  const { lines } = made(3, { name: "0-2", measured: -0.4, later: -0.3 }, { name: "0-3", carried: 0.5, later: -0.3 });
  expect(lines.map(({ isByLooking }) => isByLooking)).toEqual([false, false, true, false]);
});

test("a stop has the lines of its graph and says what they keep", () => {
  const data = made(3, { name: "0-2" });
  expect(linesOf(data, 0).map(({ name }) => name)).toEqual(["1-0", "0-1"]);
  expect(linesOf(data, 1)).toHaveLength(3);
  expect(keepsText(data, 0)[0]).toBe("2 lines keep 91 % of what attention does here");
  expect(keepsText(data, 0)[1]).toContain("2 drawn by weight keep 0.6 %.");
  expect(keepsText(data, 1)[1]).toContain("3 drawn by weight keep 0 %.");
});

test("shares have a sign, and none where they are rounding", () => {
  expect([0.24, -0.086, 0.0009, -1.02].map(signedShare)).toEqual(["+24 %", "−8.6 %", "", "−102 %"]);
});

test("width is what is carried, and a number what was measured", () => {
  const { lines, pills } = placedWhy(made(3, { name: "0-2", carried: -0.1, measured: 0.0005 }), 1, 1000);
  expect(lines.map(({ width }) => width)).toEqual([13, 6.8, 3.4].map((width) => expect.closeTo(width)));
  expect(pills.map(({ line, text }) => `${line.name} ${text}`)).toEqual(["1-0 −50 %", "0-1 −30 %"]);
});

test("what acts by looking is never too thin to be seen", () => {
  const { lines } = placedWhy(made(3, { name: "0-2", carried: 0, later: -0.3 }), 1, 1000);
  expect(lines[2].width).toBe(3);
});

test("lines between the same places are side by side", () => {
  const { lines } = placedWhy(made(3, { name: "0-2" }, { name: "0-3" }), 1, 1000);
  expect(new Set(lines.slice(1).map(({ path }) => path)).size).toBe(3);
  // They begin and end where their words are.
  expect(new Set(lines.slice(1).map(({ path }) => path.split("C")[0])).size).toBe(1);
});

test("numbers do not hide each other, and stay in the picture", () => {
  const more = Array.from({ length: 12 }, (_, at) => ({ name: `0-${at}`, measured: -0.2 - at / 100 }));
  for (const width of [330, 1200]) {
    const { pills } = placedWhy(made(3, ...more), 1, width);
    expect(pills.length).toBeGreaterThan(1);
    for (const one of pills) {
      expect(one.x - one.wide / 2).toBeGreaterThanOrEqual(0);
      expect(one.x + one.wide / 2).toBeLessThanOrEqual(width);
      for (const other of pills)
        if (other !== one)
          expect(Math.abs(one.y - other.y) > 20 || Math.abs(one.x - other.x) > (one.wide + other.wide) / 2).toBe(true);
    }
  }
});

test("of many words those that no line touches are left out, with a mark", () => {
  expect(placedWhy(made(20), 0, 1000).xs.size).toBe(20);
  const { xs, breaks } = placedWhy(made(20), 0, 330);
  expect([...xs.keys()]).toEqual([0, 1, 19]);
  expect(breaks).toHaveLength(1);
  expect(Math.max(...xs.values())).toBeLessThan(330);
});

test("a chosen line goes with those that lead to it", () => {
  const data = made(3, { name: "0-2", link: [0, 2, 0, 0] });
  const [high, low, aside] = data.lines;
  expect(leadsTo(low, high, data.lines)).toBe(true);
  expect(leadsTo(high, low, data.lines)).toBe(false);
  expect(leadsTo(aside, high, data.lines)).toBe(false);
});
