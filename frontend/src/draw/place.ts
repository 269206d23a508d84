export type Side = "query" | "key";

/** One token of one column. */
export interface Place {
  readonly side: Side;
  readonly token: number;
}

/** The tokens of one side whose attention is followed. */
export interface Focus {
  readonly side: Side;
  readonly tokens: readonly number[];
}

export function otherSide(side: Side): Side {
  return side === "query" ? "key" : "query";
}
