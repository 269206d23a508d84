import { type ComponentChildren, Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { wordColors, wordRamp } from "../../draw/color";
import { kindColor, kindRamp } from "../../draw/kinds";
import { headAddress, meanOf, notKeptWords, type ShownText, type Side } from "../../state/atlas";
import { Card } from "./parts";

/** A text, each word as dark as what ends there: of all links, or of those of one query. */
function HeatWords({ dark, text, from = null }: { dark: boolean; text: ShownText; from?: number | null }) {
  const { kind, tokens, strongest } = text;
  const ramp = useMemo(() => wordRamp(kindRamp(kind, dark)), [kind, dark]);
  const heats = Array<number>(tokens.length).fill(0);
  const links = from === null ? text.ending : text.links.filter(({ query }) => query === from);
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
              style={level > 8 ? wordColors(ramp, level) : undefined}
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

type LinkColumnsProps = { text: ShownText; from: number | null; setFrom: (from: number | null) => void };

/** Two columns of the words of a text and the links between them; one that is pointed at shows its own. */
function LinkColumns({ text: { tokens, links, rest, written }, from, setFrom }: LinkColumnsProps) {
  const weights = new Map(links.filter(({ query }) => query === from).map(({ key, weight }) => [key, weight]));
  const names = tokens.map(({ name }) => name);
  const top = links[0];
  const strongest = top ? `; the strongest from ${names[top.query]} to ${names[top.key]}` : "";
  return (
    <div class={`atlas-columns stack${rest ? " tree-columns" : ""}`} style={{ "--pitch": `${PITCH}px` }}>
      <ol aria-label="Tokens that look" onPointerLeave={() => setFrom(null)}>
        {names.map((name, at) => (
          <li key={at} class="cut">
            <button
              type="button"
              class="cut"
              data-from={at}
              aria-pressed={from === at}
              title={rest && `${name}: ${notKeptWords(rest[at])}`}
              onPointerEnter={() => setFrom(at)}
              onFocus={() => setFrom(at)}
              onClick={() => setFrom(at)}
            >
              {rest && (
                <small class="tree-rest rigid" data-part style={{ "--part": rest[at], "--color": "var(--muted)" }}>
                  {rest[at] > 0 && notKeptWords(rest[at]).replace(" not kept", "")}
                </small>
              )}
              <bdi class="cut">{name}</bdi>
            </button>
          </li>
        ))}
      </ol>
      <svg
        viewBox={`0 0 ${LINES_WIDE} ${PITCH * names.length}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${links.length} links${strongest}`}
      >
        {links.map(({ query, key, weight }) => (
          <path
            key={query * names.length + key}
            d={curve(LINES_WIDE, (query + 0.5) * PITCH, (key + 0.5) * PITCH)}
            stroke-opacity={from !== null && from !== query ? 0.04 : Math.max(0.06, weight)}
            stroke-width={1 + 3 * weight}
          >
            <title>
              {names[query]} → {names[key]} {written(weight)}
            </title>
          </path>
        ))}
      </svg>
      <ol aria-label="Tokens that are looked at">
        {names.map((name, at) => {
          const weight = weights.get(at);
          return (
            <li key={at} class="cut" data-to={weight === undefined ? undefined : ""}>
              <bdi>{name}</bdi>
              {weight !== undefined && <span class="number">{written(weight)}</span>}
              {weight === undefined && rest && from !== null && <span class="number tree-cut">not kept</span>}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const WIDE = 56;
const HIGH = 46;

/** The links of a text without its words: from the left, down its tokens, to the right. */
function MiniLines({ text: { tokens, links } }: { text: ShownText }) {
  const y = (token: number) => ((token + 0.5) * HIGH) / tokens.length;
  return (
    <svg class="atlas-mini" viewBox={`0 0 ${WIDE} ${HIGH}`} width={WIDE} height={HIGH} aria-hidden="true">
      {links.map(({ query, key, weight }) => (
        <path key={`${query} ${key}`} d={curve(WIDE, y(query), y(key))} stroke-opacity={Math.max(0.06, weight)} />
      ))}
    </svg>
  );
}

interface ExampleProps {
  dark: boolean;
  text: ShownText;
  /** Of the whole text. */
  href: string;
  score: string;
}

/** A text as a head sees it, small: its score, its links, its words. */
function Example({ dark, text, href, score }: ExampleProps) {
  return (
    <a class="atlas-example stack top" href={href} style={{ "--color": kindColor(text.kind, dark) }}>
      <span class="atlas-example-score number">{score}</span>
      <MiniLines text={text} />
      <span>
        {text.rest && <small class="tree-facts block muted">{notKeptWords(meanOf(text.rest))}</small>}
        <HeatWords dark={dark} text={text} />
      </span>
    </a>
  );
}

type Stratum = { readonly name: string; readonly count: string; readonly texts: readonly Omit<ExampleProps, "dark">[] };

interface StrataProps {
  dark: boolean;
  color?: string;
  strata: readonly Stratum[];
  title: string;
  /** How they were chosen. */
  note: string;
  /** What stands above them. */
  children?: ComponentChildren;
}

/** Texts of a head in strata, the strongest first. */
export function Strata({ dark, color = "", strata, title, note, children }: StrataProps) {
  return (
    <Card class="atlas-examples" label="Examples" title={title} color={color}>
      {children}
      {strata.map(({ name, count, texts }) => (
        <section key={name} class="atlas-stratum ruled" aria-label={name}>
          <h3>
            {name} <small>{count}</small>
          </h3>
          <ul class="halves stack">
            {texts.map((text) => (
              <li key={text.href}>
                <Example dark={dark} {...text} />
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="fine">
        {note} Words: the darker, the more of the strongest links end there; the strongest link is marked. A click opens
        the text.
      </p>
    </Card>
  );
}

interface TextPageProps {
  dark: boolean;
  text: ShownText;
  title: string;
  score: string;
  /** What is kept of it. */
  kept: string;
  head: readonly [layer: number, head: number, side?: Side];
  /** What stands below the words. */
  children?: ComponentChildren;
}

/** A whole text as one head sees it: its words, and the strongest links between two columns of them. */
export function TextPage({ dark, text, title, score, kept, head: [layer, head, side], children }: TextPageProps) {
  const [from, setFrom] = useState<number | null>(null);
  return (
    <div class="atlas-page atlas-text stack top">
      <Card
        label="Text"
        title={
          <>
            {title} <small>{score}</small>
          </>
        }
      >
        <p class="atlas-whole">
          <HeatWords dark={dark} text={text} from={from} />
        </p>
        <p class="fine">
          {kept} What is not drawn was not kept; it need not be 0. Point at a word on the left for its links.
        </p>
        <p>
          <a class="quiet muted" href={headAddress(layer, head, undefined, side)}>
            ← Head {layer}-{head}
          </a>
        </p>
        {children}
      </Card>
      <Card
        label="Links"
        color={kindColor(text.kind, dark)}
        title={<>Strongest links {text.rest && <small>on the left: how much of the row is not kept</small>}</>}
      >
        <LinkColumns text={text} from={from} setFrom={setFrom} />
      </Card>
    </div>
  );
}

/** From the left edge at one height to the right edge at another. */
function curve(width: number, from: number, to: number): string {
  return `M0 ${from.toFixed(1)}C${width / 2} ${from.toFixed(1)} ${width / 2} ${to.toFixed(1)} ${width} ${to.toFixed(1)}`;
}
