import { PageError } from "./errors";
import { checkHeader } from "./header";
import type { Source } from "./source";

/** The source of a page that a server of ours shows: header and chunks are asked for when they are needed. */
export async function httpSource(base: string): Promise<Source> {
  const header = await (await answer(`${base}header.json`)).json();
  checkHeader(header);
  return {
    header,
    chunk: async (name) => new Uint8Array(await (await answer(`${base}chunk/${name}`)).arrayBuffer()),
  };
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
  throw new PageError(`The server answered ${status} when asked for “${address}”.`);
}
