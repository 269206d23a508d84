import { useEffect, useState } from "preact/hooks";
import type { TreeHead, TreePlot, TreeTable } from "../../../source/headvis";
import { type AtlasPlace, headAddress } from "../../../state/atlas";
import {
  digits,
  meanOf,
  metricAddress,
  metricWords,
  notKept,
  notKeptWords,
  partOf,
  rangeOf,
  rankOf,
  statisticText,
  tokenName,
} from "../../../state/headvis";
import { counted } from "../../../state/words";
import { HeadNav } from "../parts";
import { Matrix, MatrixLegend, TreeText, type TreeView, TreeWords } from "./TreeText";

/** Everything that a tree says of one head; or one text as it sees it. */
export function TreeHeadPage({ view, place }: { view: TreeView; place: AtlasPlace }) {
  const [layer, number] = place.head ?? [0, 0];
  const [said, setSaid] = useState<TreeHead | null>(null);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    view.head(layer, number).then(setSaid, (error: Error) => setFailure(error.message));
  }, [view, layer, number]);
  const { heads, model } = view.index;
  const at = heads.findIndex(([one, other]) => one === layer && other === number);
  const sequence = place.text === null ? undefined : said?.sequences[place.text];
  return (
    <>
      <header class="atlas-head">
        {/* Each head has texts of its own, so the heads beside show all of them. */}
        <HeadNav place={place} before={heads[at - 1]} after={heads[at + 1]} text={undefined} />
        <h1 tabIndex={-1}>
          Head {layer}-{number}
        </h1>
        <span class="facts">{model}</span>
      </header>
      {failure && (
        <p class="caution" role="alert">
          {failure}
        </p>
      )}
      {said && sequence && <TreeText view={view} head={said} sequence={sequence} />}
      {said && !sequence && <Everything view={view} at={at} said={said} />}
    </>
  );
}

interface EverythingProps {
  view: TreeView;
  at: number;
  said: TreeHead;
}

function Everything({ view, at, said }: EverythingProps) {
  return (
    <div class="atlas-page tree-page">
      <section class="card atlas-card" aria-label="Metrics">
        <h2>Metrics</h2>
        <Metrics view={view} at={at} />
        <dl class="tree-statistics">
          {said.statistics.map(([name, value]) => (
            <div key={name}>
              <dt>{view.index.statistics[name]?.label ?? metricWords(name)}</dt>
              <dd>{statisticText(value, view.index.statistics[name]?.format)}</dd>
            </div>
          ))}
        </dl>
      </section>
      {(said.histogram || said.plots.length > 0) && (
        <section class="card atlas-card" aria-label="Histograms">
          <h2>Histograms</h2>
          <div class="tree-plots">
            {said.histogram && <Bars plot={said.histogram} />}
            {said.plots.map((plot) => (
              <Bars key={plot.label} plot={plot} />
            ))}
          </div>
        </section>
      )}
      <Strata view={view} said={said} />
      {said.tables.length > 0 && (
        <section class="card atlas-card tree-wide" aria-label="Tokens">
          <h2>Tokens</h2>
          <div class="tree-tables">
            {said.tables.map((table) => (
              <Tokens key={table.label} table={table} />
            ))}
          </div>
        </section>
      )}
    </div>
  );
}

/** Each metric with the place of the head among all. */
function Metrics({ view, at }: { view: TreeView; at: number }) {
  return (
    <table class="tree-metrics">
      <thead>
        <tr>
          <th scope="col">metric</th>
          <th scope="col">value</th>
          <th scope="col">among heads</th>
        </tr>
      </thead>
      <tbody>
        {view.index.metrics.map((metric) => {
          const value = metric.values[at] ?? null;
          const rank = rankOf(metric, at);
          return (
            <tr key={metric.name} title={metric.says}>
              <th scope="row">
                <a href={metricAddress(metric.name)}>{metricWords(metric.name)}</a>
              </th>
              <td style={value === null ? undefined : { "--part": partOf(value, rangeOf(metric.values)) }}>
                {digits(value)}
              </td>
              <td>{rank ? `${rank[0]} of ${rank[1]}` : "–"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const MINI = 72;

/** Texts of each stratum of the largest weight, the strongest first. */
function Strata({ view, said }: { view: TreeView; said: TreeHead }) {
  const strata = [...new Set(said.sequences.map(({ interval }) => interval))].sort((one, other) => other - one);
  const highest = strata[0];
  const numbered = said.sequences.map((sequence, number) => ({ sequence, number }));
  return (
    <section class="card atlas-card atlas-examples" aria-label="Examples">
      <h2>Examples, by the largest weight outside row and column 0</h2>
      <MatrixLegend view={view} />
      {strata.length === 0 && <p class="fine">The tree has no texts of this head.</p>}
      {strata.map((stratum) => {
        const texts = numbered.filter(({ sequence }) => sequence.interval === stratum);
        texts.sort((one, other) => other.sequence.largest - one.sequence.largest);
        return (
          <section key={stratum} class="atlas-stratum" aria-label={stratumName(stratum, highest)}>
            <h3>
              {stratumName(stratum, highest)} <small>{counted(texts.length, "text")} shown</small>
            </h3>
            <ul>
              {texts.map(({ sequence, number }) => (
                <li key={number}>
                  <a class="atlas-example tree-example" href={headAddress(said.layer, said.head, number)}>
                    <Matrix view={view} sequence={sequence} size={MINI} />
                    <span>
                      <span class="tree-facts">
                        <b>{digits(sequence.largest)}</b> {notKeptWords(meanOf(notKept(sequence)))}
                      </span>
                      <TreeWords view={view} sequence={sequence} />
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
      <p class="fine">
        A tree holds the largest weights of each row; hatched cells were cut, and need not be 0, but in rows of which
        all is kept. Words: the darker, the more of the kept weights end there, the first token left out; the link of
        the largest weight is marked. A click opens the text.
      </p>
    </section>
  );
}

function stratumName(stratum: number, highest: number): string {
  if (stratum === 0) return "Texts";
  if (stratum === highest && stratum > 1) return `Stratum ${stratum}, the strongest`;
  return `Stratum ${stratum}`;
}

const WIDE = 320;
const HIGH = 96;
const ROWS = 15;

/** A histogram of a tree, a bar of one width for each bin. */
function Bars({ plot }: { plot: TreePlot }) {
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
function Tokens({ table: { label, says, rows } }: { table: TreeTable }) {
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
