import { useMemo, useState } from "preact/hooks";
import { rampCss, weightRamp, wordRamp } from "../../../draw/ramps";
import type { TreeHead, TreeIndex, TreeSequence } from "../../../source/headvis";
import { headAddress, percents } from "../../../state/atlas";
import { digits, linksOf, meanOf, notKept, notKeptWords, spacesBefore, tokenName } from "../../../state/headvis";
import { HeatWords, LinkColumns } from "../ExampleWords";

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
  const links = linksOf(sequence);
  return (
    <section class="card atlas-card" aria-label="Links">
      <h2>
        Links <small>on the left: how much of the row is not kept; point at a token for its row</small>
      </h2>
      <LinkColumns
        names={sequence.tokens.map(tokenName)}
        links={links}
        from={from}
        setFrom={setFrom}
        label={`${links.length} weights that are kept`}
        number={digits}
        before={(at) => (
          <small class="tree-rest" style={{ "--part": rest[at] }}>
            {rest[at] > 0 && percents(rest[at])}
          </small>
        )}
        title={(at) => `${tokenName(sequence.tokens[at])}: ${notKeptWords(rest[at])}`}
        none={<span class="number tree-cut">not kept</span>}
      />
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
  const { tokens } = sequence;
  const spaces = useMemo(() => spacesBefore(tokens), [tokens]);
  const links = linksOf(sequence);
  // Position 0 gets most of many heads; readers of HeadVis leave it out, and so does this, but for one query.
  const inner = links.filter(({ query, key }) => query > 0 && key > 0);
  return (
    <HeatWords
      dark={view.dark}
      tokens={tokens.map((token, at) => ({ name: tokenName(token), continues: at > 0 && !spaces[at] }))}
      links={from === null ? inner : links.filter(({ query }) => query === from)}
      strongest={[...inner].sort((one, other) => other.weight - one.weight)[0]}
      from={from}
    />
  );
}

/** What all parts of the page of a tree are given. */
export interface TreeView {
  readonly index: TreeIndex;
  readonly dark: boolean;
  readonly head: (layer: number, head: number) => Promise<TreeHead>;
}
