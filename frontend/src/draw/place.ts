export type Side = "query" | "key";

/** One token of one column. */
export interface Place {
  readonly side: Side;
  readonly token: number;
}

export function otherSide(side: Side): Side {
  return side === "query" ? "key" : "query";
}

export function samePlace(a: Place | null, b: Place | null): boolean {
  return a?.side === b?.side && a?.token === b?.token;
}
