// An atlas comes in scripts, since a page that was opened from a disk may not fetch: each calls `headscopeAtlas`.

import type { ComparisonIndex } from "./atlasComparison";
import type { TreeHead, TreeIndex } from "./headvis";

/** A pair of words: query, key, share of the attention, share of even attention, 1 where both stand for text. */
export type WordPair = readonly [query: string, key: string, share: number, even: number, isWords: number];
/** A share of a head, and of even attention. */
export type Shares = readonly [share: number, even: number];

export interface AtlasLabel {
  readonly name: string;
  readonly score: number;
  readonly holds: boolean;
}

export interface AtlasTile {
  readonly layer: number;
  readonly head: number;
  readonly labels: readonly AtlasLabel[];
  readonly measures: readonly (number | null)[];
  readonly pairs: readonly WordPair[];
  /** Share of the attention that goes to tokens of each class. */
  readonly keys: readonly number[];
  readonly evenKeys: readonly number[];
  readonly alike: readonly (readonly [layer: number, head: number])[];
}

export interface AtlasIndex {
  readonly model: string;
  readonly texts: number;
  readonly tokens: number;
  readonly documents: number;
  readonly summary: string;
  readonly caution: string;
  readonly confidence: number;
  readonly patterns: readonly { readonly name: string; readonly says: string }[];
  readonly measures: readonly { readonly name: string; readonly says: string }[];
  readonly classes: readonly string[];
  readonly distances: readonly string[];
  readonly side: number;
  readonly heads: readonly AtlasTile[];
  /** Mean maps, a byte for the root of each weight, as base64. */
  readonly maps: string;
}

export interface AtlasEvidence extends AtlasLabel {
  readonly candidate: boolean;
  readonly against: string;
  readonly texts: number;
  readonly on: string;
  readonly low: number | null;
  readonly high: number | null;
  readonly baseline: number | null;
  readonly threshold: number;
  readonly effect: number | null;
  readonly corrected: number | null;
  readonly excess: number | null;
}

export interface AtlasStratum {
  readonly low: number;
  readonly high: number;
  readonly texts: number;
  readonly examples: readonly number[];
}

export interface AtlasHead {
  readonly layer: number;
  readonly head: number;
  readonly labels: readonly AtlasEvidence[];
  readonly score: string;
  readonly spread: readonly number[];
  readonly strata: readonly AtlasStratum[];
  readonly scores: readonly (number | null)[];
  readonly pairs: readonly WordPair[];
  readonly distance: readonly Shares[];
  readonly relations: Readonly<Record<string, Shares>>;
  readonly classes: readonly (readonly (number | null)[])[];
  readonly evenClasses: readonly (readonly (number | null)[])[];
  readonly neighbours: readonly (readonly [layer: number, head: number, alike: number])[];
  /** As of the tile. */
  readonly keys: readonly number[];
  readonly evenKeys: readonly number[];
  readonly links: string;
  /** Share of what it adds by class of key and by relation; empty where the atlas has no norms. */
  readonly norms: Readonly<Record<string, number | null>>;
}

export interface AtlasText {
  readonly words: readonly string[];
  readonly special: readonly number[];
}

export interface AtlasSource {
  index(): Promise<AtlasIndex | TreeIndex | ComparisonIndex>;
  head(layer: number, head: number): Promise<AtlasHead>;
  texts(): Promise<readonly AtlasText[]>;
  /** Of a tree of HeadVis. */
  treeHead(layer: number, head: number): Promise<TreeHead>;
  /** The same of one of two atlases. */
  side(side: "a" | "b"): AtlasSource;
}

type Receive = (name: string, said: unknown) => void;

/** What scripts beside the page hold; each is read once. */
export function scriptSource(page: Document & { defaultView: Window | null }): AtlasSource {
  const came = new Map<string, unknown>();
  const asked = new Map<string, Promise<unknown>>();
  const receive: Receive = (name, said) => void came.set(name, said);
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
    index: () => read("index"),
    head: (layer, head) => read(`${start}head-${layer}-${head}`),
    texts: () => read(`${start}texts`),
    treeHead: (layer, head) => read(`${start}head-${layer}-${head}`),
    side: (side) => below(`${side}-`),
  });
  return below("");
}

function missing(name: string): Error {
  return new Error(`data/${name}.js could not be read; copy the whole folder of the atlas`);
}
