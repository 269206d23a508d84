import type { PageTokens } from "../contract/page";
import type { Source } from "../source/source";
import { follower } from "./pins";

/** The name of the second record beside the first. */
export const SECOND = "b";

/** Two records as one source: the second stands beside the first, as in a page of several records. */
export function besideEachOther(first: Source, second: Source): Source {
  const prefix = `beside/${SECOND}/`;
  return {
    ...first,
    header: { ...first.header, beside: { [SECOND]: second.header } },
    chunk: (name) => (name.startsWith(prefix) ? second.chunk(name.slice(prefix.length)) : first.chunk(name)),
  };
}

/** Which tokens of the second text are not in the first, and the other way round: the edit, and no more than that. */
export function editOf(first: PageTokens, second: PageTokens): { first: number[]; second: number[] } {
  const edited = (from: PageTokens, to: PageTokens) => {
    const follow = follower(from.pieces, to.pieces);
    return from.pieces.flatMap((_, token) => (follow(token).length === 0 ? [token] : []));
  };
  return { first: edited(first, second), second: edited(second, first) };
}
