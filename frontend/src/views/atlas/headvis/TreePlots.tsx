import type { TreePlot, TreeTable } from "../../../source/headvis";
import { digits, tokenName } from "../../../state/headvis";

const WIDE = 320;
const HIGH = 96;
const ROWS = 15;

/** A histogram of a tree, a bar of one width for each bin. */
export function Bars({ plot }: { plot: TreePlot }) {
  const { label, says, edges, values } = plot;
  const most = Math.max(...values, Number.MIN_VALUE);
  const width = WIDE / values.length;
  const top = values.indexOf(most);
  const peak = top < 0 ? "" : `; most, ${digits(most)}, from ${digits(edges[top])} to ${digits(edges[top + 1])}`;
  return (
    <figure class="tree-plot">
      <svg viewBox={`0 -2 ${WIDE} ${HIGH + 18}`} role="img" aria-label={`${label}${peak}`}>
        {values.map((value, bin) => (
          <rect
            key={bin}
            x={bin * width}
            y={HIGH - (HIGH * value) / most}
            width={width * 0.86}
            height={(HIGH * value) / most}
          >
            <title>
              {digits(edges[bin])} to {digits(edges[bin + 1])}: {digits(value)}
            </title>
          </rect>
        ))}
        <path d={`M0 ${HIGH + 0.5}H${WIDE}`} />
        {ticksOf(values.length).map((bin) => (
          <text
            key={bin}
            x={bin * width}
            y={HIGH + 13}
            text-anchor={bin === 0 ? "start" : bin === values.length ? "end" : "middle"}
          >
            {digits(edges[bin])}
          </text>
        ))}
      </svg>
      <figcaption>
        <b>{label}</b>
        {says && ` – ${says}`}
      </figcaption>
    </figure>
  );
}

/** The edges that are named: all of a few bins, five or six of many. */
function ticksOf(bins: number): number[] {
  if (bins <= 8) return Array.from({ length: bins + 1 }, (_, bin) => bin);
  const parts = bins % 5 === 0 ? 5 : 4;
  return Array.from({ length: parts + 1 }, (_, part) => Math.round((part * bins) / parts));
}

/** Tokens with their weights. */
export function Tokens({ table: { label, says, rows } }: { table: TreeTable }) {
  const most = Math.max(...rows.map(([, weight]) => weight), Number.MIN_VALUE);
  return (
    <table class="tree-tokens">
      <caption>
        <b>{label}</b>
        {says && ` – ${says}`}
      </caption>
      <tbody>
        {rows.slice(0, ROWS).map(([token, weight], at) => (
          <tr key={at}>
            <th scope="row">
              <bdi>{tokenName(token)}</bdi>
            </th>
            <td style={{ "--part": Math.max(0, weight) / most }}>{digits(weight)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
