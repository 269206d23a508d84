import type { ComparedPair, ComparedScore, ComparisonIndex } from "../source/atlasComparison";
import { type GridRows, rowsOf, type Side } from "./atlas";

// Two atlases side by side: which head is matched with which, and where B's heads are drawn.

export type ComparedSide = Exclude<Side, "">;

/** The other of two atlases. */
export function otherSide(side: ComparedSide): ComparedSide {
  return side === "a" ? "b" : "a";
}

/** Of each head of one atlas the number of its pair; -1 where it has no partner. */
export function pairsOf(index: ComparisonIndex, side: ComparedSide): number[] {
  const numbers = Array<number>(index[side].heads.length).fill(-1);
  index.pairs.forEach((pair, number) => {
    numbers[pair[side]] = number;
  });
  return numbers;
}

/** What a head is called: layer and number. */
export function headName(index: ComparisonIndex, side: ComparedSide, at: number): string {
  const { layer, head } = index[side].heads[at];
  return `${layer}-${head}`;
}

/** Both heads of a pair: "2-7 → 3-1". */
export function pairName(index: ComparisonIndex, { a, b }: ComparedPair): string {
  return `${headName(index, "a", a)} → ${headName(index, "b", b)}`;
}

/** The address of a pair: that of its head of A. */
export function pairAddress(index: ComparisonIndex, number: number): string {
  return `#/pair/${headName(index, "a", index.pairs[number].a)}`;
}

/** The number of the pair that an address says; null where it says none, -1 where there is none. */
export function readPair(fragment: string, index: ComparisonIndex): number | null {
  const [, name] = /^#?\/pair\/(\d+-\d+)$/.exec(fragment) ?? [];
  if (name === undefined) return null;
  return index.pairs.findIndex((pair) => headName(index, "a", pair.a) === name);
}

/** How much a pair changed: 0 where both heads are the same, 1 where they are as unlike as random pairs. */
export function changeOf(index: ComparisonIndex, { similarity }: ComparedPair): number {
  const most = 1 - index.chance;
  return most > 0 ? Math.min(1, Math.max(0, (1 - similarity) / most)) : 0;
}

/** The heads of B where those of A are that they are matched with. */
export function partnerRows(index: ComparisonIndex): GridRows {
  const { layers, rows } = rowsOf(index.a.heads);
  const pairs = pairsOf(index, "a");
  return { layers, rows: rows.map((row) => row.map((at) => (pairs[at] < 0 ? -1 : index.pairs[pairs[at]].b))) };
}

/** The heads of an atlas that have no partner. */
export function unmatched(index: ComparisonIndex, side: ComparedSide): number[] {
  const pairs = pairsOf(index, side);
  return [...pairs.keys()].filter((at) => pairs[at] < 0);
}

/** Whether 0 is outside of the interval of a difference. */
export function isClear([, , , , low, high]: ComparedScore): boolean {
  return low !== null && high !== null && (low > 0 || high < 0);
}

/** Mean weights of B less those of A, from bytes of their roots. */
export function mapDifference(
  a: { maps: Uint8Array; at: number },
  b: { maps: Uint8Array; at: number },
  width: number,
): Float64Array {
  const weight = ({ maps, at }: typeof a, cell: number) => (maps[at * width * width + cell] / 255) ** 2;
  return Float64Array.from({ length: width * width }, (_, cell) => weight(b, cell) - weight(a, cell));
}

/** A change as it is written: +.31, −.04, 0. */
export function signed(value: number): string {
  if (Math.abs(value) < 0.005) return "0";
  const digits = Math.abs(value).toFixed(2).replace(/^0/, "");
  return `${value < 0 ? "−" : "+"}${digits}`;
}
