import type { Page } from "../contract/page";

export type FigureKind = "svg" | "pdf" | "png";

/** Options of Python's `figure`. */
export type FigureOptions = Readonly<Record<string, string | number | boolean | readonly number[] | readonly string[]>>;

/** Where a view gets its data from: a file, a notebook or a server. */
export interface Source {
  readonly header: Page;
  /** The source whose further record this is. */
  readonly root?: Source;
  /** Whether another may soon stand in its place: then nothing is loaded that nobody asked for. */
  readonly passing?: boolean;
  /** The bytes of one named chunk, unpacked. */
  chunk(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** The file of a figure that Python draws; only where there is a Python. */
  figure?(kind: FigureKind, options: FigureOptions): Promise<Uint8Array<ArrayBuffer>>;
}
