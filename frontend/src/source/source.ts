import type { Page } from "../contract/page";

/** Where a view gets its data from: a file, a notebook or a server. */
export interface Source {
  readonly header: Page;
  /** The bytes of one named chunk, unpacked. */
  chunk(name: string): Promise<Uint8Array<ArrayBuffer>>;
}
