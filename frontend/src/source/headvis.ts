// A tree of HeadVis, in the scripts of an atlas: what it lacks of one is not there.

export interface TreeMetric {
  readonly name: string;
  readonly says: string;
  readonly values: readonly (number | null)[];
}

export interface TreeIndex {
  readonly kind: "headvis";
  readonly model: string;
  readonly dataset: string;
  readonly texts: number | null;
  /** Whether no query saw what comes after it; else that is not known. */
  readonly causal: boolean;
  readonly heads: readonly (readonly [layer: number, head: number])[];
  readonly metrics: readonly TreeMetric[];
  readonly statistics: Readonly<Record<string, { readonly label: string; readonly format: string }>>;
}

export interface TreePlot {
  readonly label: string;
  readonly says: string;
  readonly edges: readonly number[];
  readonly values: readonly number[];
}

export interface TreeTable {
  readonly label: string;
  readonly says: string;
  readonly rows: readonly (readonly [token: string, weight: number])[];
}

/** A text with the largest weights of each row; what was cut is not known. */
export interface TreeSequence {
  readonly name: string;
  /** From 1, the highest the strongest; 0 where that is not known. */
  readonly interval: number;
  /** The largest weight outside row and column 0. */
  readonly largest: number;
  readonly tokens: readonly string[];
  readonly queries: readonly number[];
  readonly keys: readonly number[];
  readonly weights: readonly number[];
}

export interface TreeHead {
  readonly layer: number;
  readonly head: number;
  readonly sequences: readonly TreeSequence[];
  readonly histogram: TreePlot | null;
  readonly plots: readonly TreePlot[];
  readonly tables: readonly TreeTable[];
  readonly statistics: readonly (readonly [name: string, value: number | string])[];
}
