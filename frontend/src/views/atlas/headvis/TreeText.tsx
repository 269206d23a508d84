import { useState } from "preact/hooks";
import type { TreeHead, TreeSequence } from "../../../source/headvis";
import { headAddress, percents } from "../../../state/atlas";
import { digits, linksOf, meanOf, notKept, notKeptWords, tokenName } from "../../../state/headvis";
import { curve } from "../ExampleWords";
import { Matrix, MatrixLegend } from "./Matrix";
import { TreeWords } from "./TreeWords";
import type { TreeView } from "./view";

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
