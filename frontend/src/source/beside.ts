import { PageError } from "./errors";
import type { Source } from "./source";

/** The source of a further record of a page, or the page's own where it has no name. */
export function sourceBeside(source: Source, name: string): Source {
  if (!name) return source;
  const header = source.header.beside?.[name];
  if (!header) throw new PageError(`This page has no record “${name}”.`);
  return { header, root: source, chunk: (chunk) => source.chunk(`beside/${name}/${chunk}`) };
}
