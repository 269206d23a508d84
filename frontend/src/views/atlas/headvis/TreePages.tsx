import { useMemo } from "preact/hooks";
import { type Ramp, weightRamp, wordColors, wordRamp } from "../../../draw/color";
import { Choice } from "../../../parts/controls";
import { Scale } from "../../../parts/legend";
import type { AtlasSource, TreeHead, TreeIndex, TreeMetric, TreeTable } from "../../../source/atlas";
import * as atlas from "../../../state/atlas";
import { counted } from "../../../state/words";
import { besideHead, Card, HeadGrid, Heading, Histogram, Table, useLoaded } from "../parts";
import { Strata, TextPage } from "../Texts";

type HeadTileProps = { view: TreeView; metric: TreeMetric | undefined; ramp: Ramp; at: number; tabbed: boolean };

/** The map of all heads of a tree, each in the colour of one of its metrics. */
export function TreeMap({ view, metric }: Pick<HeadTileProps, "view" | "metric">) {
  const { index } = view;
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const [low, high] = atlas.rangeOf(metric?.values ?? []);
  return (
    <>
      <header>
        <h1 tabIndex={-1}>{index.model || "A tree of HeadVis"}</h1>
        <span class="facts muted">
          {counted(index.heads.length, "head")}
          {index.texts !== null && ` over ${counted(index.texts, "text")}`}
          {index.dataset && ` (${index.dataset})`} · a tree of HeadVis
        </span>
      </header>
      <section class="card atlas-all" aria-label="All heads">
        {metric && (
          <div class="tree-metric row wrap apart">
            <Choice
              label="Colour by"
              name="data-metric"
              options={index.metrics.map(({ name }) => name)}
              words={Object.fromEntries(index.metrics.map(({ name }) => [name, atlas.metricWords(name)]))}
              chosen={metric.name}
              onChoose={(name) => (location.hash = atlas.metricAddress(name))}
            />
            <Scale
              ramp={ramp}
              ticks={[low, high].map((end, at) => [at, atlas.digits(end)] as const)}
              label={atlas.metricWords(metric.name)}
            />
          </div>
        )}
        <p class="atlas-says muted">
          <bdi>{metric ? metric.says || atlas.metricWords(metric.name) : "The tree has no metrics."}</bdi>
        </p>
        <HeadGrid
          grid={atlas.rowsOf(index.heads.map(([layer, head]) => ({ layer, head })))}
          columns={1 + Math.max(...index.heads.map(([, head]) => head))}
          tile={(at, tabbed) => <HeadTile key={at} view={view} metric={metric} ramp={ramp} at={at} tabbed={tabbed} />}
        />
      </section>
    </>
  );
}

/** A head in the colour of its metric; even the smallest value is coloured a little, since it is known. */
function HeadTile({ view, metric, ramp, at, tabbed }: HeadTileProps) {
  const [layer, head] = view.index.heads[at];
  const value = metric?.values[at] ?? null;
  const byte = Math.round(20 + 235 * atlas.partOf(value ?? 0, atlas.rangeOf(metric?.values ?? [])));
  const told = metric ? `${atlas.metricWords(metric.name)} ${atlas.digits(value)}` : "";
  const colors = value === null ? {} : wordColors(ramp, byte);
  return (
    <a
      class="tree-tile stack slim"
      href={atlas.headAddress(layer, head)}
      data-tile={`${layer}-${head}`}
      data-unknown={value === null || undefined}
      tabIndex={tabbed ? 0 : -1}
      aria-label={`Head ${layer}-${head}${told && `: ${told}`}`}
      title={`Head ${layer}-${head}${told && `\n${told}`}`}
      style={{ "grid-column": head + 2, ...colors }}
    >
      <span>{atlas.digits(value)}</span>
    </a>
  );
}

/** What all parts of the page of a tree are given. */
export type TreeView = { readonly index: TreeIndex; readonly dark: boolean; readonly source: AtlasSource };

/** Everything that a tree says of one head; or one text as it sees it. */
export function TreeHeadPage({ view, place }: { view: TreeView; place: atlas.AtlasPlace }) {
  const [layer, number] = place.head ?? [0, 0];
  const [said, failure] = useLoaded(() => view.source.read<TreeHead>(`head-${layer}-${number}`), [view, layer, number]);
  const { heads, model } = view.index;
  const at = heads.findIndex(([one, other]) => one === layer && other === number);
  const sequence = place.text === null ? undefined : said?.sequences[place.text];
  return (
    <>
      <Heading
        // Each head has texts of its own, so the heads beside show all of them.
        {...besideHead(place, [heads[at - 1], heads[at + 1]])}
        title={`Head ${layer}-${number}`}
        failure={failure}
      >
        <span class="facts muted">{model}</span>
      </Heading>
      {said && sequence && (
        <TextPage
          dark={view.dark}
          text={atlas.treeText(sequence)}
          title={`Text ${sequence.name}`}
          score={`largest weight ${atlas.digits(sequence.largest)}${sequence.interval > 0 ? ` · stratum ${sequence.interval}` : ""}`}
          kept={`Of the head's attention on this text: ${atlas.notKeptWords(atlas.meanOf(atlas.notKept(sequence)))}.`}
          head={[layer, number]}
        />
      )}
      {said && !sequence && <Everything view={view} at={at} said={said} />}
    </>
  );
}

function Everything({ view, at, said }: { view: TreeView; at: number; said: TreeHead }) {
  return (
    <div class="atlas-page tree-page stack top">
      <Card label="Metrics" title="Metrics">
        <Metrics view={view} at={at} />
        <Table
          class="tree-statistics"
          rows={said.statistics.map(([name, value]) => {
            const { label = atlas.metricWords(name), format } = view.index.statistics[name] ?? {};
            return [label, atlas.statisticText(value, format)];
          })}
        />
      </Card>
      {(said.histogram || said.plots.length > 0) && (
        <Card label="Histograms" title="Histograms">
          <div class="tree-plots stack">
            {said.histogram && <Histogram plot={said.histogram} />}
            {said.plots.map((plot) => (
              <Histogram key={plot.label} plot={plot} />
            ))}
          </div>
        </Card>
      )}
      <Examples view={view} said={said} />
      {said.tables.length > 0 && (
        <Card class="tree-wide" label="Tokens" title="Tokens">
          <div class="tree-tables stack">
            {said.tables.map((table) => (
              <Tokens key={table.label} table={table} />
            ))}
          </div>
        </Card>
      )}
    </div>
  );
}

/** Each metric with the place of the head among all. */
function Metrics({ view, at }: { view: TreeView; at: number }) {
  return (
    <Table
      class="tree-metrics"
      head={["metric", "value", "among heads"]}
      rows={view.index.metrics.map((metric) => {
        const value = metric.values[at] ?? null;
        const rank = atlas.rankOf(metric, at);
        return [
          <a href={atlas.metricAddress(metric.name)}>{atlas.metricWords(metric.name)}</a>,
          {
            text: atlas.digits(value),
            part: value === null ? undefined : atlas.partOf(value, atlas.rangeOf(metric.values)),
          },
          rank ? `${rank[0]} of ${rank[1]}` : "–",
        ];
      })}
      marks={(row) => ({ title: view.index.metrics[row].says })}
    />
  );
}

/** Texts of each stratum of the largest weight, the strongest first. */
function Examples({ view, said }: { view: TreeView; said: TreeHead }) {
  const numbers = [...new Set(said.sequences.map(({ interval }) => interval))].sort((one, other) => other - one);
  const texts = said.sequences.map((sequence, at) => ({
    sequence,
    href: atlas.headAddress(said.layer, said.head, at),
    text: atlas.treeText(sequence),
  }));
  texts.sort((one, other) => other.sequence.largest - one.sequence.largest);
  const strata = numbers.map((number) => {
    const of = texts.filter(({ sequence }) => sequence.interval === number);
    return {
      name: number === 0 ? "Texts" : `Stratum ${number}${number === numbers[0] && number > 1 ? ", the strongest" : ""}`,
      count: `${counted(of.length, "text")} shown`,
      texts: of.map(({ sequence, ...text }) => ({ ...text, score: atlas.digits(sequence.largest) })),
    };
  });
  return (
    <Strata
      dark={view.dark}
      title="Examples, by the largest weight outside row and column 0"
      strata={strata}
      note="A tree holds the largest weights of each row; what is not kept was cut, and need not be 0."
    >
      {strata.length === 0 && <p class="fine">The tree has no texts of this head.</p>}
    </Strata>
  );
}

const ROWS = 15;

/** Tokens with their weights. */
function Tokens({ table: { label, says, rows } }: { table: TreeTable }) {
  const most = Math.max(...rows.map(([, weight]) => weight), Number.MIN_VALUE);
  return (
    <Table
      class="tree-tokens"
      caption={
        <>
          <b>{label}</b>
          {says && ` – ${says}`}
        </>
      }
      rows={rows
        .slice(0, ROWS)
        .map(([token, weight]) => [
          <bdi>{atlas.tokenName(token)}</bdi>,
          { text: atlas.digits(weight), part: Math.max(0, weight) / most },
        ])}
    />
  );
}
