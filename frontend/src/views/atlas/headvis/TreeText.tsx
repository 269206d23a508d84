import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { rampCss, weightRamp, wordRamp } from "../../../draw/ramps";
import type { TreeHead, TreeIndex, TreeSequence } from "../../../source/headvis";
import { headAddress, percents } from "../../../state/atlas";
import { digits, linksOf, meanOf, notKept, notKeptWords, spacesBefore, tokenName } from "../../../state/headvis";
import { curve } from "../ExampleWords";

const PITCH = 20;
const WIDE = 300;
const SIZE = 480;

interface TreeTextProps {
  view: TreeView;
  head: TreeHead;
  sequence: TreeSequence;
}

/** A whole text as one head sees it: its words, a matrix, and links; each row with how much of it is not kept. */
export function TreeText({ view, head, sequence }: TreeTextProps) {
  const [from, setFrom] = useState<number | null>(null);
  const rest = notKept(sequence);
  return (
    <div class="atlas-page atlas-text">
      <section class="card atlas-card" aria-label="Text">
        <h2>
          Text {sequence.name}{" "}
          <small>
            largest weight {digits(sequence.largest)}
            {sequence.interval > 0 && ` · stratum ${sequence.interval}`}
          </small>
        </h2>
        <p class="atlas-whole">
          <TreeWords view={view} sequence={sequence} from={from} />
        </p>
        <p class="fine">
          Of the head's attention on this text: {notKeptWords(meanOf(rest))}. A tree of HeadVis holds the largest
          weights of each row; what is not drawn need not be 0.
        </p>
        <p>
          <a class="quiet" href={headAddress(head.layer, head.head)}>
            ← Head {head.layer}-{head.head}
          </a>
        </p>
        <h3>Rows look, columns are looked at</h3>
        <Matrix view={view} sequence={sequence} size={SIZE} from={from} label={matrixWords(sequence)} />
        <MatrixLegend view={view} />
      </section>
      <Links sequence={sequence} rest={rest} from={from} setFrom={setFrom} />
    </div>
  );
}

interface LinksProps {
  sequence: TreeSequence;
  rest: readonly number[];
  from: number | null;
  setFrom: (from: number | null) => void;
}

function Links({ sequence, rest, from, setFrom }: LinksProps) {
  const { tokens } = sequence;
  const links = linksOf(sequence);
  const weights = new Map(links.filter(({ query }) => query === from).map(({ key, weight }) => [key, weight]));
  return (
    <section class="card atlas-card" aria-label="Links">
      <h2>
        Links <small>on the left: how much of the row is not kept; point at a token for its row</small>
      </h2>
      <div class="atlas-columns tree-columns" style={{ "--pitch": `${PITCH}px` }}>
        <ol aria-label="Tokens that look" onPointerLeave={() => setFrom(null)}>
          {tokens.map((token, at) => (
            <li key={at}>
              <button
                type="button"
                data-from={at}
                aria-pressed={from === at}
                title={`${tokenName(token)}: ${notKeptWords(rest[at])}`}
                onPointerEnter={() => setFrom(at)}
                onFocus={() => setFrom(at)}
                onClick={() => setFrom(at)}
              >
                <small class="tree-rest" style={{ "--part": rest[at] }}>
                  {rest[at] > 0 && percents(rest[at])}
                </small>
                <bdi>{tokenName(token)}</bdi>
              </button>
            </li>
          ))}
        </ol>
        <svg
          viewBox={`0 0 ${WIDE} ${PITCH * tokens.length}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${links.length} weights that are kept`}
        >
          {links.map(({ query, key, weight }) => (
            <path
              key={query * tokens.length + key}
              d={curve(WIDE, (query + 0.5) * PITCH, (key + 0.5) * PITCH)}
              stroke-opacity={from !== null && from !== query ? 0.03 : Math.max(0.05, weight)}
              stroke-width={1 + 3 * weight}
            />
          ))}
        </svg>
        <ol aria-label="Tokens that are looked at">
          {tokens.map((token, at) => {
            const weight = weights.get(at);
            return (
              <li key={at} data-to={weight === undefined ? undefined : ""}>
                <bdi>{tokenName(token)}</bdi>
                {weight !== undefined && <span class="number">{digits(weight)}</span>}
                {weight === undefined && from !== null && <span class="number tree-cut">not kept</span>}
              </li>
            );
          })}
        </ol>
      </div>
    </section>
  );
}

function matrixWords(sequence: TreeSequence): string {
  const { tokens, weights } = sequence;
  return `${weights.length} of ${tokens.length ** 2} weights are kept; the others are hatched`;
}

interface MatrixProps {
  view: TreeView;
  sequence: TreeSequence;
  /** Edge in pixels that the picture has at most. */
  size: number;
  /** What it is called, where it is no part of a link that says so. */
  label?: string;
  /** A row that is pointed at. */
  from?: number | null;
}

/**
 * The weights that are kept of a text. Other cells are hatched: they were cut, and need not be 0; but for those of a
 * row that is kept to its last thousandth.
 */
export function Matrix({ view, sequence, size, label, from = null }: MatrixProps) {
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const count = sequence.tokens.length;
  const cell = size / count;
  const rest = useMemo(() => notKept(sequence), [sequence]);
  const name = label === undefined ? undefined : tokenName;
  return (
    <svg
      class="tree-matrix"
      viewBox={`0 0 ${size} ${size}`}
      width={size}
      height={size}
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label === undefined}
    >
      <Hatching size={size} step={label ? 6 : 4} />
      {rest.map(
        (part, query) =>
          part === 0 && (
            <rect key={query} class="tree-hidden" x={0} y={query * cell} width={size} height={cell + 0.3} />
          ),
      )}
      {view.index.causal && <path class="tree-hidden" d={afterQueries(count, cell)} />}
      {linksOf(sequence).map(({ query, key, weight }) => (
        <rect
          key={query * count + key}
          x={key * cell}
          y={query * cell}
          width={cell}
          height={cell}
          fill={rampCss(ramp, Math.round(255 * Math.sqrt(Math.min(1, weight))))}
        >
          {name && (
            <title>
              {name(sequence.tokens[query])} → {name(sequence.tokens[key])} {digits(weight)}
            </title>
          )}
        </rect>
      ))}
      {from !== null && <rect class="tree-row" x={0} y={from * cell} width={size} height={cell} />}
    </svg>
  );
}

/** Oblique lines over all of it, as one path: a pattern would need an id, and each page has many pictures. */
function Hatching({ size, step }: { size: number; step: number }) {
  const lines = Array.from({ length: Math.ceil((2 * size) / step) }, (_, at) => {
    const end = (at + 1) * step;
    return `M${Math.min(end, size)} ${Math.max(0, end - size)}L${Math.max(0, end - size)} ${Math.min(end, size)}`;
  });
  return <path class="tree-hatch" d={lines.join("")} />;
}

/** The cells of keys after their query, as steps. */
function afterQueries(count: number, cell: number): string {
  const steps = Array.from({ length: count }, (_, query) => `V${query * cell}H${(query + 1) * cell}`);
  return `M${cell} 0${steps.slice(1).join("")}V0Z`;
}

/** What colours and hatching mean. */
export function MatrixLegend({ view }: { view: TreeView }) {
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const steps = Array.from({ length: 9 }, (_, step) => rampCss(ramp, Math.round((255 * step) / 8)));
  return (
    <p class="tree-legend">
      <span class="tree-scale">
        <span>weight 0</span>
        <span class="tree-scale-bar" style={{ background: `linear-gradient(90deg, ${steps.join(",")})` }} />
        <span>1</span>
      </span>
      <span>
        <svg class="tree-matrix" viewBox="0 0 18 12" width="18" height="12" aria-hidden="true">
          <Hatching size={18} step={4} />
        </svg>{" "}
        not kept
      </span>
      {view.index.causal && (
        <span>
          <svg class="tree-matrix" viewBox="0 0 18 12" width="18" height="12" aria-hidden="true" /> after the query:
          never seen
        </span>
      )}
    </p>
  );
}

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

/** What all parts of the page of a tree are given. */
export interface TreeView {
  readonly index: TreeIndex;
  readonly dark: boolean;
  readonly head: (layer: number, head: number) => Promise<TreeHead>;
}
