// An atlas comes in scripts, since a page that was opened from a disk may not fetch: each calls `headscopeAtlas`.

type Numbers = readonly number[];
type MaybeNumber = number | null;
type Described = Readonly<{ label: string; description: string }>;

/** A pair of words: query, key, share of the attention, share of even attention, 1 where both stand for text. */
export type WordPair = readonly [query: string, key: string, share: number, even: number, isWords: number];
/** A share of a head, and of even attention. */
export type Shares = readonly [share: number, even: number];

export type AtlasLabel = { readonly name: string; readonly score: number; readonly holds: boolean };

export interface AtlasTile {
  readonly layer: number;
  readonly head: number;
  readonly labels: readonly AtlasLabel[];
  readonly pairs: readonly WordPair[];
  /** Share of the attention that goes to tokens of each class. */
  readonly keys: Numbers;
  readonly evenKeys: Numbers;
}

export interface AtlasIndex {
  readonly kind?: undefined;
  readonly model: string;
  readonly texts: number;
  readonly tokens: number;
  readonly documents: number;
  /** What heads are coloured by in place of mean maps: of a tree of HeadVis, and of two atlases. */
  readonly metrics?: readonly TreeMetric[];
  readonly summary: string;
  readonly caution: string;
  readonly patterns: readonly { readonly name: string; readonly says: string }[];
  readonly classes: readonly string[];
  readonly distances: readonly string[];
  readonly side: number;
  readonly heads: readonly AtlasTile[];
  /** Mean maps, a byte for the root of each weight, as base64. */
  readonly maps: string;
}

type Known = Readonly<Record<"low" | "high" | "baseline" | "effect" | "corrected", MaybeNumber>>;

export type AtlasEvidence = AtlasLabel &
  Known &
  Readonly<{ candidate: boolean; against: string; texts: number; on: string; threshold: number }>;

export type AtlasStratum = Readonly<{ low: number; high: number; texts: number; examples: Numbers }>;

export interface AtlasHead extends Omit<AtlasTile, "labels"> {
  readonly labels: readonly AtlasEvidence[];
  readonly score: string;
  readonly spread: Numbers;
  readonly strata: readonly AtlasStratum[];
  readonly scores: readonly MaybeNumber[];
  readonly distance: readonly Shares[];
  readonly relations: Readonly<Record<string, Shares>>;
  readonly neighbours: readonly (readonly [layer: number, head: number, alike: number])[];
  readonly links: string;
  /** Share of what it adds by class of key and by relation; empty where the atlas has no norms. */
  readonly norms: Readonly<Record<string, MaybeNumber>>;
  /** Of a tree of HeadVis: all that there is. */
  readonly tree?: TreeHead;
}

export type AtlasText = { readonly words: readonly string[]; readonly special: Numbers };

export type AnyIndex = AtlasIndex | ComparisonIndex;

/** What the scripts of a folder hold by their names: an index, heads, texts. */
export interface AtlasSource {
  read<Said>(name: string): Promise<Said>;
  /** The same of one of two atlases. */
  side(side: "a" | "b"): AtlasSource;
}

/** What scripts beside the page hold; each is read once. */
export function scriptSource(page: Document & { defaultView: Window | null }): AtlasSource {
  const came = new Map<string, unknown>();
  const asked = new Map<string, Promise<unknown>>();
  const receive = (name: string, said: unknown) => void came.set(name, said);
  Object.assign(page.defaultView ?? {}, { headscopeAtlas: receive });
  const read = <T>(name: string): Promise<T> => {
    const known = asked.get(name);
    if (known) return known as Promise<T>;
    const promise = new Promise<T>((resolve, reject) => {
      const script = page.createElement("script");
      script.src = `data/${name}.js`;
      script.onload = () => (came.has(name) ? resolve(came.get(name) as T) : reject(missing(name)));
      script.onerror = () => {
        asked.delete(name);
        reject(missing(name));
      };
      page.head.append(script);
    });
    asked.set(name, promise);
    return promise;
  };
  const below = (start: string): AtlasSource => ({
    read: (name) => read(`${start}${name}`),
    side: (side) => below(`${side}-`),
  });
  return below("");
}

function missing(name: string): Error {
  return new Error(`data/${name}.js could not be read; copy the whole folder of the atlas`);
}

// Two atlases: the first, whose metrics say how much its heads and their partners in the second differ.

export interface ComparedPair {
  /** Places of both heads among those of their atlas. */
  readonly a: number;
  readonly b: number;
  readonly similarity: number;
  /** Mean similarity of the head of A and all heads of B. */
  readonly chance: number;
  readonly nextBest: MaybeNumber;
  /** In the order of `parts` of the index; null where it is not known. */
  readonly parts: readonly MaybeNumber[];
  readonly gained: readonly string[];
  readonly lost: readonly string[];
}

/** A score of both heads of a pair, and the interval of the difference. */
type Score = [pair: number, pattern: string, before: number, after: number, low: MaybeNumber, high: MaybeNumber];
export type ComparedScore = Readonly<Score>;

export interface ComparisonIndex extends Required<Pick<AtlasIndex, "metrics" | "summary" | "caution">> {
  readonly kind: "comparison";
  readonly a: AtlasIndex;
  readonly b: AtlasIndex;
  readonly names: readonly [a: string, b: string];
  readonly parts: readonly string[];
  /** Mean similarity of matched heads, of random pairs, and of different heads that are matched in the same way. */
  readonly similarity: MaybeNumber;
  readonly chance: number;
  readonly different: MaybeNumber;
  readonly confidence: number;
  readonly sameTexts: boolean;
  readonly pairs: readonly ComparedPair[];
  /** Those whose interval does not hold 0 first, the largest difference first. */
  readonly differences: readonly ComparedScore[];
}

// A tree of HeadVis is an atlas that lacks most of one.

export interface TreeMetric {
  readonly name: string;
  readonly says: string;
  readonly values: readonly MaybeNumber[];
  /** Where each lies between the least and the most, from 0 to 1. */
  readonly parts: readonly MaybeNumber[];
  /** "3 of 144": which it is from the top. */
  readonly places: readonly string[];
}

export type TreePlot = Described & Readonly<{ edges: Numbers; values: Numbers }>;

export type TreeTable = Described & Readonly<{ rows: readonly (readonly [token: string, weight: number])[] }>;

/** A text with the largest weights of each row, the strongest first; what was cut is not known. */
export interface TreeSequence {
  readonly name: string;
  /** The largest weight outside row and column 0. */
  readonly largest: number;
  readonly tokens: readonly string[];
  readonly queries: Numbers;
  readonly keys: Numbers;
  readonly weights: Numbers;
  /** How much of each row is not kept. */
  readonly rest: Numbers;
}

export interface TreeHead {
  readonly sequences: readonly TreeSequence[];
  /** Texts by their number, the strongest stratum first; 0 where a tree does not say which. */
  readonly strata: readonly (readonly [stratum: number, texts: Numbers])[];
  readonly plots: readonly TreePlot[];
  readonly tables: readonly TreeTable[];
  readonly statistics: readonly (readonly [name: string, value: number | string, format: string | null])[];
}
