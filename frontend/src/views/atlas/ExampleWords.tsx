import { Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { rampCss, weightRamp, wordRamp } from "../../draw/ramps";
import type { AtlasHead, AtlasText } from "../../source/atlas";
import { type AtlasLink, bare, linksOn } from "../../state/atlas";
import type { AtlasView } from "./parts";

export interface ExampleProps {
  view: AtlasView;
  said: AtlasHead;
  number: number;
  text: AtlasText;
}

/** A text with the words that links end at, and the strongest link between words. */
export function ExampleWords({ view, said, number, text, from }: ExampleProps & { from?: number | null }) {
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const links = linksOn(said, number);
  const [strongest] = linksOn(said, number, true);
  const special = new Set(text.special);
  const shown =
    from === null || from === undefined ? links : bothOn(said, number).filter(({ query }) => query === from);
  const heats = heatsOf(shown, text.words.length);
  const most = from === null || from === undefined ? Math.max(0.2, ...heats) : 1;
  return (
    <span class="atlas-words" dir="auto">
      {text.words.map((word, at) => {
        const continues = word !== bare(word);
        const level = Math.round(255 * Math.sqrt(Math.min(1, heats[at] / most)));
        return (
          <Fragment key={at}>
            {at > 0 && !continues && " "}
            <span
              class="atlas-word"
              data-continues={continues || undefined}
              data-special={special.has(at) || undefined}
              data-query={at === (from ?? strongest?.query) || undefined}
              data-key={(from === undefined && at === strongest?.key) || undefined}
              style={level > 8 ? { background: rampCss(ramp, level), color: inkOn(view.dark, level) } : undefined}
            >
              {bare(word)}
            </span>
          </Fragment>
        );
      })}
    </span>
  );
}

/** The strongest links, of words too, each once. */
export function bothOn(said: AtlasHead, number: number): AtlasLink[] {
  const links = linksOn(said, number);
  const known = new Set(links.map(({ query, key }) => `${query} ${key}`));
  return [...links, ...linksOn(said, number, true).filter(({ query, key }) => !known.has(`${query} ${key}`))];
}

function heatsOf(links: readonly AtlasLink[], count: number): number[] {
  const heats = Array<number>(count).fill(0);
  for (const { key, weight } of links) heats[key] += weight;
  return heats;
}

/** Black or white on the colour of a level: ramps get dark past their middle on paper, and light on black. */
function inkOn(dark: boolean, level: number): string {
  if (dark) return level > 200 ? "#000" : "#fff";
  return level > 175 ? "#fff" : "#000";
}

const WIDE = 56;
const HIGH = 46;

/** The links of a text without its words: from the left, down its tokens, to the right. */
export function MiniLines({ said, number, text }: ExampleProps) {
  const y = (token: number) => ((token + 0.5) * HIGH) / text.words.length;
  return (
    <svg class="atlas-mini" viewBox={`0 0 ${WIDE} ${HIGH}`} width={WIDE} height={HIGH} aria-hidden="true">
      {bothOn(said, number).map(({ query, key, weight }) => (
        <path key={`${query} ${key}`} d={curve(WIDE, y(query), y(key))} stroke-opacity={Math.max(0.06, weight)} />
      ))}
    </svg>
  );
}

/** From the left edge at one height to the right edge at another. */
export function curve(width: number, from: number, to: number): string {
  return `M0 ${from.toFixed(1)}C${width / 2} ${from.toFixed(1)} ${width / 2} ${to.toFixed(1)} ${width} ${to.toFixed(1)}`;
}
