import { useMemo } from "preact/hooks";
import { rampCss, weightRamp, wordRamp } from "../../../draw/ramps";
import type { TreeSequence } from "../../../source/headvis";
import { digits, linksOf, notKept, tokenName } from "../../../state/headvis";
import type { TreeView } from "./view";

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
