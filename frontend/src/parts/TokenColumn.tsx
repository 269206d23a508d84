import { useMemo } from "preact/hooks";
import type { PageTokens } from "../contract/page";
import type { Side } from "../draw/columns";
import type { Pictures } from "../source/pictures";
import { Patch } from "./Patch";
import { tokenOption } from "./tokenList";

/** Longer labels may be cut in a narrow column. */
export const LONG_LABEL = 14;

/** With more tokens than this none has a small picture: they would take most of the time until a page is there. */
const MOST_PICTURED = 600;

interface TokenColumnProps {
  side: Side;
  tokens: PageTokens;
  /** That patches are parts of. */
  pictures: Pictures;
  /** Mark the two texts of a pair. */
  pair: boolean;
}

/**
 * The tokens of one side, as text.
 *
 * It is rendered once for each stack: what changes while the pointer moves is written to the elements directly.
 */
export function TokenColumn({ side, tokens, pictures, pair }: TokenColumnProps) {
  // The same element again and again, so that nothing of it is rendered twice.
  return useMemo(
    () => (
      <div class="column relative" data-column={side}>
        {pair && <TextMarks segments={tokens.segments} />}
        <div class="tokens" role="listbox" aria-label={side === "query" ? "Query tokens" : "Key tokens"}>
          {tokens.labels.map((label, token) => {
            const { text, marks } = tokenOption(tokens, token, side);
            return (
              <div key={token} class="token row" title={label.length > LONG_LABEL ? label : undefined} {...marks}>
                {tokens.labels.length <= MOST_PICTURED && <Patch tokens={tokens} token={token} pictures={pictures} />}
                <bdi class="label">{text}</bdi>
              </div>
            );
          })}
        </div>
      </div>
    ),
    [side, tokens, pictures, pair],
  );
}

function TextMarks({ segments }: { segments: readonly number[] }) {
  return (
    <>
      {runs(segments).map(({ start, length, text }) => (
        <span
          key={start}
          class="text-mark stack muted"
          aria-hidden="true"
          style={{ top: `calc(${start} * var(--pitch) + 3px)`, height: `calc(${length} * var(--pitch) - 6px)` }}
        >
          {text}
        </span>
      ))}
    </>
  );
}

/** The stretches of tokens that belong to the same text. */
export function runs(segments: readonly number[]): { start: number; length: number; text: "A" | "B" }[] {
  const starts = [...segments.keys()].filter((token) => token === 0 || segments[token] !== segments[token - 1]);
  return starts.map((start, index) => ({
    start,
    length: (starts[index + 1] ?? segments.length) - start,
    text: segments[start] === 0 ? "A" : "B",
  }));
}
