import { expect, test } from "vitest";
import { CHOICES } from "../../contract/values";
import type { LayerValues } from "../../src/draw/values";
import { type LoadedKinds, loadKinds } from "../../src/source/heads";
import {
  aligningHead,
  clausesOf,
  clearestHead,
  clearestOfEach,
  headsByKind,
  headWords,
  kindOf,
  shareText,
} from "../../src/state/kinds";
import { examplePage, exampleSource, type StackOptions, tokens } from "../examples/page";

const WORDS = tokens(
  ["[CLS]", "we", "saw", "the", "cat", "[SEP]", "the", "##y", "slept", "[SEP]"],
  [0, 0, 0, 0, 0, 0, 1, 1, 1, 1],
);

type Numbers = Readonly<Record<string, number>>;

/** Two layers of three heads, each given by its kind and what else is known of it. */
async function known(heads: readonly (readonly [(typeof CHOICES.kind)[number], Numbers])[]): Promise<LoadedKinds> {
  const options: StackOptions = {
    heads: 3,
    layers: [0, 4],
    query: WORDS,
    key: WORDS,
    kinds: (layer, head) => {
      const [kind, numbers] = heads[(layer === 0 ? 0 : 3) + head] ?? ["none", {}];
      return { special: 0.1, link_query: -1, score: 0.5, ...numbers, kind: CHOICES.kind.indexOf(kind) };
    },
  };
  const example = examplePage(options);
  let loaded: LoadedKinds | null = null;
  await loadKinds(exampleSource(example), example.page.stacks[0], 0, (now) => {
    loaded = now;
    return true;
  });
  if (!loaded) throw new Error("nothing was loaded");
  return loaded;
}

test("a sharp head is told with its number and with what leaves its pattern", async () => {
  const leaver = { leaver_query: 5, leaver_key: 0, leaver: 0.87 };
  const kinds = await known([["next", { next: 0.9998, own: 1, ...leaver }]]);
  expect(headWords(kinds, 0)).toEqual({
    does: "looks at the next token",
    more: ".9998 inside sentences; [SEP] leaves the pattern (to [CLS], .87)",
  });
});

test("a weaker one is told with what rests meanwhile, a single text has no sentences", async () => {
  const rest = { special: 0.38, rest_key: 0, rest_other: 5 };
  const kinds = await known([["previous", { previous: 0.58, own: Number.NaN, ...rest }]]);
  expect(headWords(kinds, 0).more).toBe(".58 of what words give; .38 rests on [CLS] and [SEP]");
});

test("a head of the same word names its strongest link, one that looks at itself says so", async () => {
  const link = { same_query: 6, same_key: 3, same_link: 0.93 };
  const kinds = await known([
    ["same", { same: 0.43, itself: 0.1, ...link }],
    ["same", { same: 0.1, itself: 0.7 }],
    ["same", { same: Number.NaN, itself: 0.6 }],
  ]);
  expect(headWords(kinds, 0)).toEqual({
    does: "finds the same word elsewhere",
    more: ".43 where a word comes twice; most “the” → “the” .93",
  });
  expect([1, 2].map((head) => headWords(kinds, head).does)).toEqual(Array(2).fill("looks at the token itself"));
});

test("a resting head names where, special tokens or one word", async () => {
  const kinds = await known([
    ["resting", { special: 0.8, rest_key: 5, rest_other: -1, link: 0.31, link_query: 4, link_key: 2 }],
    ["resting", { special: 0.1, top: 0.4, top_key: 7, link: 0.1 }],
  ]);
  expect(headWords(kinds, 0)).toEqual({
    does: "rests on [SEP]",
    more: ".80 of what words give; strongest link between words “cat” → “saw” .31",
  });
  expect(headWords(kinds, 1)).toEqual({ does: "rests on “##y”", more: ".40 of what words give" });
});

test("the sentence about all heads has a clause for each kind there is, in the order of kinds", async () => {
  const rest = { special: 0.9, rest_key: 0, rest_other: -1 };
  const kinds = await known([
    ["resting", rest],
    ["previous", {}],
    ["resting", { ...rest, rest_other: 5 }],
    ["same", {}],
    ["previous", {}],
    ["none", {}],
  ]);
  expect(clausesOf(kinds).map(({ count, text }) => `${count} ${text}`)).toEqual([
    "2 look at the previous token",
    "1 at the same word",
    "2 rest on [CLS] or [SEP]",
    "1 does none of these",
  ]);
});

test("a page opens on the clearest pattern, however clearly others rest", async () => {
  const kinds = await known([
    ["resting", { score: 0.99 }],
    ["next", { score: 0.4 }],
    ["same", { score: 0.7 }],
    ["next", { score: 0.6 }],
  ]);
  expect(clearestHead(kinds)).toBe(2);
  expect(headsByKind(kinds)[0]).toEqual({ kind: "next", heads: [3, 1] });
  expect(clearestOfEach(kinds)).toEqual([
    { kind: "next", head: 3 },
    { kind: "same", head: 2 },
    { kind: "resting", head: 0 },
  ]);
});

test("heads that a layer does not have are of no kind", async () => {
  const kinds = await known([["next", { score: Number.NaN }]]);
  kinds.values.fill(Number.NaN, kinds.said.columns.length);
  expect(kindOf(kinds, 1)).toBeNull();
  expect(headsByKind(kinds)).toEqual([{ kind: "next", heads: [0] }]);
});

test("numbers have as many digits as tell them from 0 and 1", () => {
  expect([0.99996, 0.9998, 0.58, 0.004, 0.0001, Number.NaN].map(shareText)).toEqual([
    "1",
    ".9998",
    ".58",
    ".004",
    "0",
    "–",
  ]);
});

test("kinds come a layer at a time, the nearest first, and stop when nobody wants them", async () => {
  const example = examplePage({ heads: 2, layers: [0, 1, 2], kinds: (layer) => ({ kind: 0, score: layer }) });
  const [stack] = example.page.stacks;
  const whole = example.chunks.get("kinds/self") as Uint8Array<ArrayBuffer>;
  const size = whole.length / 3;
  const asked: string[] = [];
  const source = {
    ...exampleSource(example),
    chunk: async (name: string) => {
      asked.push(name);
      const row = Number(name.at(-1));
      return whole.slice(row * size, (row + 1) * size);
    },
  };
  if (!stack.kinds) throw new Error("no kinds");
  const kinds = { ...stack.kinds, values: { ...stack.kinds.values, split: 1 } };
  const left: number[] = [];
  await loadKinds(source, { ...stack, kinds }, 1, (now) => {
    left.push(now.left);
    return now.left > 1;
  });
  expect([asked, left]).toEqual([
    ["kinds/self/1", "kinds/self/0", "kinds/self/2"],
    [2, 1],
  ]);
});

test("cross-attention opens on the head that goes along the other text, not on one that rests", () => {
  const [queries, keys] = [6, 5];
  const row = (at: number) => Float32Array.from({ length: keys }, (_, key) => (key === at ? 4 : 0));
  const looks = [(_: number) => 4, (query: number) => (query * 3) % 4, (query: number) => Math.min(3, query)];
  const thumbs = {
    heads: 3,
    queries,
    keys,
    row: (head: number, query: number) => row(looks[head](query)),
  } as LayerValues;
  const special = [false, false, false, false, true];
  expect(aligningHead(thumbs, special)).toBe(2);
  expect(aligningHead({ ...thumbs, heads: 2 }, special)).toBeNull();
});

test("of a picture it is told in words of patches", async () => {
  const kinds = await known([
    ["resting", { score: 0.9, special: 0.9 }],
    ["none", {}],
    ["none", {}],
  ]);
  const patches = { ...kinds.stack.query, areas: kinds.stack.query.labels.map(() => "1/1") };
  const picture = { ...kinds, stack: { ...kinds.stack, query: patches, key: patches } };
  expect(clausesOf(picture).map(({ text }) => text)).toEqual([
    "looks at the same few patches",
    "change from patch to patch",
  ]);
  expect(headWords(picture, 1).does).toBe("changes from patch to patch");
  expect(headWords(picture, 0).more).toContain("of what patches give");
});
