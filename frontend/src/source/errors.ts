/** Something is wrong with the page itself; the message is shown to the reader. */
export class PageError extends Error {
  override readonly name = "PageError";
}
