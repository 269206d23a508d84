import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { PageTokens } from "../contract/page";
import type { Side } from "../draw/columns";
import type { Pictures } from "../source/pictures";
import { readable } from "../state/label";
import { Patch } from "./Patch";

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
          {tokens.labels.map((label, token) => (
            <Token
              key={token}
              side={side}
              token={token}
              label={label}
              continues={tokens.continues[token]}
              special={tokens.special[token]}
              rule={token === tokens.written}
            >
              {tokens.labels.length <= MOST_PICTURED && <Patch tokens={tokens} token={token} pictures={pictures} />}
            </Token>
          ))}
        </div>
      </div>
    ),
    [side, tokens, pictures, pair],
  );
}

interface TokenProps {
  side: Side;
  token: number;
  label: string;
  continues: boolean;
  special: boolean;
  /** The first token that the model wrote. */
  rule: boolean;
  children: ComponentChildren;
}

function Token({ side, token, label, continues, special, rule, children }: TokenProps) {
  const { text, standIn } = readable(label);
  return (
    <div
      class="token row"
      role="option"
      aria-selected="false"
      tabIndex={token === 0 ? 0 : -1}
      title={label.length > LONG_LABEL ? label : undefined}
      data-side={side}
      data-token={token}
      data-special={special || undefined}
      data-continues={continues || undefined}
      data-stand-in={standIn || undefined}
      data-rule={rule || undefined}
    >
      {children}
      <bdi class="label">{text}</bdi>
    </div>
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
