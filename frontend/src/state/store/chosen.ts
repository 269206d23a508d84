import { batch, computed, type Signal, signal } from "@preact/signals-core";
import type { PageStack } from "../../../types/page";
import { keyOf, queryOf, type ScoreParts } from "../../draw/scores";
import type { Place, Side } from "../../draw/tokens";
import { largest, type Merge, mergedTokens, mergedValues, mergeOf } from "../../draw/values";
import { LayerCache, type LoadedLayer } from "../../source/layers";
import { type Source, sourceBeside } from "../../source/source";
import type { WhyLine } from "../../views/why/place";
import { findStack, fitSelection, isStep, leaving, pageSelection, type Selection, togglePin } from "../selection";
import type { Opened } from "./heads";

/** What the pointer or the keyboard is at: a token of one side, or a pair. */
export type Hover = { readonly [Of in Side]?: number };

/** What is chosen, pointed at and open: all that follows from it is worked out elsewhere. */
export type Chosen = ReturnType<typeof chosenState>;

/** Where all that is shown comes from. */
interface Origin {
  /** The source as it was given. */
  readonly given: Source;
  /** The same, or a further record of it. */
  readonly source: Source;
  readonly layers: LayerCache;
}

/** Heads in an order that no page has, such as by what they matter to a guess of a model. */
export interface Ranked {
  readonly stack: string;
  readonly label: string;
  /** As thumbnails are numbered. */
  readonly heads: readonly number[];
  /** What is told of each of them. */
  readonly text: (head: number) => string;
}

/** What a reader has chosen of a page, or of a further record of it that the selection names. */
export function chosenState(given: Source, wanted: Partial<Selection>, shared?: LayerCache) {
  const start = (given.root ?? given).header;
  const isRecord = (name: string, of = root.peek()) => !name || Object.hasOwn(of.beside ?? {}, name);
  const first = { ...pageSelection(start), ...wanted };
  const record = isRecord(first.shown_record, start) ? first.shown_record : "";
  const source = sourceBeside(given, record);
  // A model that answers gives one source after the other.
  const origin = signal<Origin>({ given, source, layers: shared ?? new LayerCache(source) });
  const page = computed(() => origin.value.source.header);
  const root = computed(() => (origin.value.given.root ?? origin.value.given).header);
  const selection = signal(fitSelection({ ...first, shown_record: record }, page.value, start));
  const part = <Key extends keyof Selection>(key: Key) => computed(() => selection.value[key]);
  const [view, theme] = [part("view"), part("theme")];
  const [systemDark, printing] = [signal(false), signal(false)];
  const failure = signal<unknown>(null);
  return {
    origin,
    /** The page itself, also where what is shown is a further record of it. */
    root,
    isRecord,
    /** The name of the further record that is shown; empty for the page's own. */
    record,
    page,
    selection: selection as Signal<Selection>,
    /** What is to be shown of another record, which has a state of its own. */
    elsewhere: signal<Selection | null>(null),
    part,
    view,
    systemDark: systemDark as Signal<boolean>,
    /** Paper is white. */
    printing: printing as Signal<boolean>,
    dark: computed(() => !printing.value && (theme.value === "auto" ? systemDark.value : theme.value === "dark")),
    hover: signal<Hover>({}),
    /** The head under the pointer, as its thumbnail is numbered; the overview shows it in full. */
    peeked: signal<number | null>(null),
    ranked: signal<Ranked | null>(null),
    /** Whether the sheet of keys and marks is open. */
    help: signal(false),
    /** All heads on black: as a poster, or layer after layer. */
    show: signal<"poster" | "film" | null>(null),
    /** Why a word was said, whether that is what is shown, and the line of it that is pinned. */
    why: signal(start.why ?? null),
    inWhy: signal(start.why !== undefined),
    line: signal<WhyLine | null>(null),
    /** Whether the field that finds tokens is open. */
    searching: signal(false),
    /** What was done and cannot be seen at once, for those who do not see. */
    said: signal(""),
    failure: failure as Signal<unknown>,
    /** Says in place of the view what went wrong. */
    fail: (error: unknown) => (failure.value = error),
  };
}

/** The stack that is chosen, its tokens as they are shown, and the pinned ones. */
export type TokenState = ReturnType<typeof tokenState>;

/** The tokens of the chosen stack: pieces, or the words that they make. */
export function tokenState({ page, selection, part }: Chosen) {
  const [stackName, inWords] = [part("stack"), part("words")];
  /** The stack as the page has it, in pieces. */
  const pieceStack = computed(() => findStack(page.value, stackName.value));
  /** How pieces make words, where these are shown. */
  const merge = computed(() => {
    if (!inWords.value || !hasPieces(pieceStack.value)) return null;
    return { query: mergeOf(pieceStack.value.query), key: mergeOf(pieceStack.value.key) };
  });
  const wordsAt = (side: Side, pieces: readonly number[]): readonly number[] => {
    const of = merge.value?.[side];
    return of ? [...new Set(pieces.map((piece) => of.wordOf[piece]))] : pieces;
  };
  const pinsKey = computed(() => `${selection.value.query.join()}|${selection.value.key.join()}`);
  return {
    pieceStack,
    merge,
    wordsAt,
    /** The first piece of what is shown as a token. */
    pieceAt: ({ side, token }: Place): number => merge.peek()?.[side].starts[token] ?? token,
    pins: computed((): Record<Side, readonly number[]> => {
      void pinsKey.value;
      const { query, key } = selection.peek();
      return { query: wordsAt("query", query), key: wordsAt("key", key) };
    }),
    /** The stack as it is shown. */
    stack: computed((): PageStack => {
      const [of, { query, key }] = [merge.value, pieceStack.value];
      if (!of) return pieceStack.value;
      return { ...pieceStack.value, query: mergedTokens(query, of.query), key: mergedTokens(key, of.key) };
    }),
    /** Whether words of the chosen stack have several pieces. */
    hasPieces: computed(() => hasPieces(pieceStack.value)),
    /** Whether what is shown as tokens are words of several pieces. */
    merged: computed(() => merge.value !== null),
  };
}

/** Long texts are told by sentences, which are of pieces. */
function hasPieces({ query, key, sentences }: PageStack): boolean {
  if (sentences) return false;
  return query.continues.includes(true) || key.continues.includes(true);
}

/** Which pieces make the words of both sides. */
export type Words = Readonly<Record<Side, Merge>>;

/** A layer between words in place of pieces. */
export function joined<Layer extends LoadedLayer>(layer: Layer, of: Words): Layer {
  const values = new Map([...layer.values].map(([name, piece]) => [name, mergedValues(piece, of, name === "score")]));
  return {
    ...layer,
    values,
    weights: values.get("weight") ?? layer.weights,
    even: mergedValues(layer.even, of),
    scores: null,
    visible: null,
    valueNorms: layer.valueNorms && longestOf(layer.valueNorms, layer.weights.heads, of.key),
  };
}

/**
 * The queries and keys of one head between words: the means over their pieces, so that every product, and q . k with
 * them, is the mean over all pairs of their pieces.
 */
export function wordParts(parts: ScoreParts, head: number, of: Words): ScoreParts {
  const { features } = parts;
  const means = (
    numbersOf: (parts: ScoreParts, head: number, token: number) => Float32Array,
    { wordOf, starts }: Merge,
  ) => {
    const made = new Float32Array((starts.length - 1) * features);
    wordOf.forEach((word, piece) => {
      const share = 1 / (starts[word + 1] - starts[word]);
      numbersOf(parts, head, piece).forEach((value, feature) => {
        made[word * features + feature] += share * value;
      });
    });
    return made;
  };
  return {
    ...parts,
    heads: 1,
    kvHeads: 1,
    queries: of.query.starts.length - 1,
    keys: of.key.starts.length - 1,
    query: means(queryOf, of.query),
    key: means(keyOf, of.key),
    bias: null,
    sinks: null,
    visible: null,
  };
}

/** What a word adds at most: the longest of its pieces; axes head, key. */
function longestOf(norms: Float32Array, heads: number, { starts, wordOf }: Merge): Float32Array {
  const keys = starts.length - 1;
  return Float32Array.from({ length: heads * keys }, (_, at) => {
    const [head, word] = [Math.floor(at / keys), at % keys];
    return largest(norms.subarray(head * wordOf.length + starts[word], head * wordOf.length + starts[word + 1]));
  });
}

/** What a word that looks has with each word, of the rows of its pieces. */
export function joinedRow(
  rows: readonly ((head: number, key: number) => number | undefined)[],
  { starts }: Merge,
  scores: boolean,
) {
  return (head: number, word: number): number | undefined => {
    const pieces = Array.from({ length: starts[word + 1] - starts[word] }, (_, at) => starts[word] + at);
    const all = rows.flatMap((row) => pieces.map((key) => row(head, key)));
    const known = all.filter((value) => value !== undefined && Number.isFinite(value)) as number[];
    if (all.includes(undefined)) return undefined;
    if (scores && known.length === 0) return Number.NEGATIVE_INFINITY;
    return known.reduce((sum, value) => sum + value, 0) / (scores ? known.length : rows.length);
  };
}

/** What was shown before, and what comes after a step back. */
export type Steps = { readonly past: Selection[]; readonly ahead: Selection[] };

/** What a reader does: chooses, goes back, pins, points and lets go. */
export function acts(chosen: Chosen, { pieceStack, wordsAt, pieceAt }: TokenState, { opening }: Opened, steps: Steps) {
  const { root, record, isRecord, page, selection, elsewhere, hover, peeked, help, searching, show: onBlack } = chosen;
  const { inWhy } = chosen;
  const { past, ahead } = steps;
  const show = (next: Selection) =>
    batch(() => {
      peeked.value = null;
      selection.value = next;
    });
  function select(change: (selection: Selection) => Selection): void {
    const before = selection.peek();
    const changed = change(before);
    const other = changed.shown_record !== record && isRecord(changed.shown_record);
    const kept = { ...leaving(before, changed, pieceStack.peek(), opening.peek()), shown_record: record };
    const next = other ? changed : fitSelection(kept, page.peek(), root.peek());
    if (isStep(before, next)) {
      past.push(before);
      ahead.length = 0;
    }
    if (other) elsewhere.value = next;
    else show(next);
  }
  return {
    select,
    /** Changes parts of the selection; with a view, that is what is shown. */
    choose(part: Partial<Selection>): void {
      if (part.view) inWhy.value = false;
      select((now) => ({ ...now, ...part }));
    },
    /** The selection before the last step, or after it again. */
    undo(forward: boolean): void {
      const [from, to] = forward ? [ahead, past] : [past, ahead];
      const next = from.pop();
      if (!next) return;
      to.push(selection.peek());
      if (next.shown_record !== record) elsewhere.value = next;
      else show(next);
    },
    /** Pins what is shown as a token, or releases it; to add, beside those that are pinned. */
    pin(place: Place, add = false): void {
      const first = (side: Side, pieces: readonly number[]) =>
        wordsAt(side, pieces).map((token) => pieceAt({ side, token }));
      select((now) =>
        togglePin(
          { ...now, query: first("query", now.query), key: first("key", now.key) },
          { ...place, token: pieceAt(place) },
          add,
        ),
      );
    },
    preview(at: Hover): void {
      const now = hover.peek();
      if (at.query !== now.query || at.key !== now.key) hover.value = at;
    },
    release(): void {
      batch(() => {
        hover.value = {};
        if (onBlack.value) onBlack.value = null;
        else if (help.value) help.value = false;
        else if (searching.value) searching.value = false;
        else select((now) => ({ ...now, query: [], key: [], kind: null }));
      });
    },
  };
}
