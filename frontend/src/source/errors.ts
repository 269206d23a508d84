/** Something is wrong with the page itself; the message is shown to the reader. */
export class PageError extends Error {
  override readonly name = "PageError";
}

/** What is said of anything that went wrong. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
