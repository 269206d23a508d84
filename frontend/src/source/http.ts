import { encoded } from "./address";
import { PageError } from "./errors";
import { checkHeader } from "./header";
import type { Source } from "./source";

const DOTS = /(?:^|\/)\.\.?(?:\/|$)/;

/** The source of a page that a server of ours shows: header and chunks are asked for when they are needed. */
export async function httpSource(base: string): Promise<Source> {
  const header = await (await answer(`${base}header.json`)).json();
  checkHeader(header);
  return {
    header,
    // Dots between slashes would lead out of the folder.
    chunk: (name) => bytes(`${base}chunk/${DOTS.test(name) ? encodeURIComponent(name) : encoded(name)}`),
    figure: (kind, options) => bytes(`${base}figure/${kind}?options=${encodeURIComponent(JSON.stringify(options))}`),
  };
}

async function bytes(address: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await (await answer(address)).arrayBuffer());
}

async function answer(address: string): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address);
  } catch (cause) {
    throw new PageError("The server does not answer: it has ended. Start `headscope serve` again.", { cause });
  }
  if (response.ok) return response;
  const { status } = response;
  if (status === 403) {
    throw new PageError("The server does not know this page: open the address that `headscope serve` printed.");
  }
  if (status === 400) throw new PageError(await response.text());
  throw new PageError(`The server answered ${status} when asked for “${address}”.`);
}
