import { encoded } from "./chunkName";
import { PageError } from "./errors";
import { checkHeader } from "./header";
import type { FigureKind, FigureOptions, Source } from "./source";

const DOTS = /(?:^|\/)\.\.?(?:\/|$)/;

/** Statuses whose text says what is wrong. */
const SAID = [400, 503];

/**
 * The source of a page that a server of ours shows: header and chunks are asked for when they are needed. The token
 * that the server knows its page by travels in a header, which no other page can send.
 */
export async function httpSource(base: string, token: string): Promise<Source> {
  const answer = (address: string) => ask(address, { "X-Headscope-Token": token });
  const header = await (await answer(`${base}header.json`)).json();
  checkHeader(header);
  return { header, ...readingAt(base, answer) };
}

/** Chunks and figures of a record that stands at an address. */
export function readingAt(base: string, answer: (address: string) => Promise<Response>) {
  const bytes = async (address: string) => new Uint8Array(await (await answer(address)).arrayBuffer());
  return {
    // Dots between slashes would lead out of the folder.
    chunk: (name: string) => bytes(`${base}chunk/${DOTS.test(name) ? encodeURIComponent(name) : encoded(name)}`),
    figure: (kind: FigureKind, options: FigureOptions) =>
      bytes(`${base}figure/${kind}?options=${encodeURIComponent(JSON.stringify(options))}`),
  } satisfies Omit<Source, "header">;
}

async function ask(address: string, headers: Readonly<Record<string, string>>): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, { headers });
  } catch (cause) {
    throw new PageError("The server does not answer: it has ended. Start `headscope serve` again.", { cause });
  }
  if (response.ok) return response;
  const { status } = response;
  if (status === 403) {
    throw new PageError("The server does not know this page: open the address that `headscope serve` printed.");
  }
  if (SAID.includes(status)) throw new PageError(await response.text());
  throw new PageError(`The server answered ${status} when asked for “${address}”.`);
}
