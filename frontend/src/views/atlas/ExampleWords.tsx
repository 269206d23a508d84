import { type ComponentChildren, Fragment } from "preact";
import { useMemo } from "preact/hooks";
import { textOn } from "../../draw/color";
import { rampColor, rampCss, weightRamp, wordRamp } from "../../draw/ramps";
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
export function ExampleWords({ view, said, number, text, from = null }: ExampleProps & { from?: number | null }) {
  const links = from === null ? linksOn(said, number) : bothOn(said, number).filter(({ query }) => query === from);
  const special = new Set(text.special);
  return (
    <HeatWords
      dark={view.dark}
      tokens={text.words.map((word, at) => ({
        name: bare(word),
        continues: word !== bare(word),
        special: special.has(at),
      }))}
      links={links}
      strongest={linksOn(said, number, true)[0]}
      from={from}
    />
  );
}

interface HeatWordsProps {
  dark: boolean;
  tokens: readonly { readonly name: string; readonly continues: boolean; readonly special?: boolean }[];
  /** Those that colour the words that they end at: of one query where there is one. */
  links: readonly AtlasLink[];
  strongest: AtlasLink | undefined;
  from: number | null;
}

/** A text, each word as dark as what ends there. */
export function HeatWords({ dark, tokens, links, strongest, from }: HeatWordsProps) {
  const ramp = useMemo(() => wordRamp(weightRamp(dark)), [dark]);
  const heats = Array<number>(tokens.length).fill(0);
  for (const { key, weight } of links) heats[key] += weight;
  const most = from === null ? Math.max(0.2, ...heats) : 1;
  return (
    <span class="atlas-words" dir="auto">
      {tokens.map(({ name, continues, special }, at) => {
        const level = Math.round(255 * Math.sqrt(Math.min(1, heats[at] / most)));
        return (
          <Fragment key={at}>
            {at > 0 && !continues && " "}
            <span
              class="atlas-word"
              data-continues={continues || undefined}
              data-special={special || undefined}
              data-query={at === (from ?? strongest?.query) || undefined}
              data-key={(from === null && at === strongest?.key) || undefined}
              style={
                level > 8 ? { background: rampCss(ramp, level), color: textOn(rampColor(ramp, level)) } : undefined
              }
            >
              {name}
            </span>
          </Fragment>
        );
      })}
    </span>
  );
}

const PITCH = 20;
const LINES_WIDE = 300;

interface LinkColumnsProps {
  names: readonly string[];
  links: readonly AtlasLink[];
  from: number | null;
  setFrom: (from: number | null) => void;
  /** What the picture is called. */
  label: string;
  number: (weight: number) => string;
  /** What stands before a token that looks, and what is said of it. */
  before?: (token: number) => ComponentChildren;
  title?: (token: number) => string;
  /** What stands at a token that the chosen one has no link to. */
  none?: ComponentChildren;
}

/** Two columns of the words of a text and the links between them; one that is pointed at shows its own. */
export function LinkColumns({ names, links, from, setFrom, label, number, before, title, none }: LinkColumnsProps) {
  const weights = new Map(links.filter(({ query }) => query === from).map(({ key, weight }) => [key, weight]));
  return (
    <div class={`atlas-columns${before ? " tree-columns" : ""}`} style={{ "--pitch": `${PITCH}px` }}>
      <ol aria-label="Tokens that look" onPointerLeave={() => setFrom(null)}>
        {names.map((name, at) => (
          <li key={at}>
            <button
              type="button"
              data-from={at}
              aria-pressed={from === at}
              title={title?.(at)}
              onPointerEnter={() => setFrom(at)}
              onFocus={() => setFrom(at)}
              onClick={() => setFrom(at)}
            >
              {before?.(at)}
              <bdi>{name}</bdi>
            </button>
          </li>
        ))}
      </ol>
      <svg
        viewBox={`0 0 ${LINES_WIDE} ${PITCH * names.length}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {links.map(({ query, key, weight }) => (
          <path
            key={query * names.length + key}
            d={curve(LINES_WIDE, (query + 0.5) * PITCH, (key + 0.5) * PITCH)}
            stroke-opacity={from !== null && from !== query ? 0.04 : Math.max(0.06, weight)}
            stroke-width={1 + 3 * weight}
          >
            <title>
              {names[query]} → {names[key]} {number(weight)}
            </title>
          </path>
        ))}
      </svg>
      <ol aria-label="Tokens that are looked at">
        {names.map((name, at) => {
          const weight = weights.get(at);
          return (
            <li key={at} data-to={weight === undefined ? undefined : ""}>
              <bdi>{name}</bdi>
              {weight === undefined ? from !== null && none : <span class="number">{number(weight)}</span>}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** The strongest links, of words too, each once. */
export function bothOn(said: AtlasHead, number: number): AtlasLink[] {
  const links = linksOn(said, number);
  const known = new Set(links.map(({ query, key }) => `${query} ${key}`));
  return [...links, ...linksOn(said, number, true).filter(({ query, key }) => !known.has(`${query} ${key}`))];
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
function curve(width: number, from: number, to: number): string {
  return `M0 ${from.toFixed(1)}C${width / 2} ${from.toFixed(1)} ${width / 2} ${to.toFixed(1)} ${width} ${to.toFixed(1)}`;
}
