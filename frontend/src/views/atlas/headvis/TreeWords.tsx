import { Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { rampCss, weightRamp, wordRamp } from "../../../draw/ramps";
import type { TreeSequence } from "../../../source/headvis";
import { linksOf, spacesBefore, tokenName } from "../../../state/headvis";
import type { TreeView } from "./view";

/** A text with the tokens that kept weights end at: of all queries but the first, or of one. */
export function TreeWords({
  view,
  sequence,
  from = null,
}: {
  view: TreeView;
  sequence: TreeSequence;
  from?: number | null;
}) {
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const { tokens } = sequence;
  const spaces = useMemo(() => spacesBefore(tokens), [tokens]);
  const inner = linksOf(sequence).filter(({ query, key }) => query > 0 && key > 0);
  const strongest = inner.reduce<(typeof inner)[number] | null>(
    (best, link) => (best && best.weight >= link.weight ? best : link),
    null,
  );
  const heats = Array<number>(tokens.length).fill(0);
  // Position 0 gets most of many heads; readers of HeadVis leave it out, and so does this, but for one query.
  for (const { query, key, weight } of from === null ? inner : linksOf(sequence)) {
    if (from === null || query === from) heats[key] += weight;
  }
  const most = from === null ? Math.max(0.2, ...heats) : 1;
  return (
    <span class="atlas-words" dir="auto">
      {tokens.map((token, at) => {
        const byte = Math.round(255 * Math.sqrt(Math.min(1, heats[at] / most)));
        return (
          <Fragment key={at}>
            {spaces[at] && " "}
            <span
              class="atlas-word"
              data-continues={(at > 0 && !spaces[at]) || undefined}
              data-query={at === (from ?? strongest?.query) || undefined}
              data-key={(from === null && at === strongest?.key) || undefined}
              style={byte > 8 ? { background: rampCss(ramp, byte), color: inkOn(view.dark, byte) } : undefined}
            >
              {tokenName(token)}
            </span>
          </Fragment>
        );
      })}
    </span>
  );
}

function inkOn(dark: boolean, byte: number): string {
  if (dark) return byte > 200 ? "#000" : "#fff";
  return byte > 175 ? "#fff" : "#000";
}
