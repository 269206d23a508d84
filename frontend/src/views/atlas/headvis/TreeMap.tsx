import { useMemo } from "preact/hooks";
import { rampCss, weightRamp, wordRamp } from "../../../draw/ramps";
import { Choice } from "../../../parts/Choice";
import { Scale } from "../../../parts/Scale";
import type { TreeHead, TreeIndex, TreeMetric } from "../../../source/headvis";
import { headAddress, rowsOf } from "../../../state/atlas";
import { digits, metricAddress, metricWords, partOf, rangeOf } from "../../../state/headvis";
import { counted } from "../../../state/words";
import { HeadGrid } from "../parts";

/** The map of all heads of a tree, each in the colour of one of its metrics. */
export function TreeMap({ view, metric }: { view: TreeView; metric: TreeMetric | undefined }) {
  const { index } = view;
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const [low, high] = rangeOf(metric?.values ?? []);
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
          <div class="tree-metric row wrap">
            <Choice
              label="Colour by"
              name="data-metric"
              options={index.metrics.map(({ name }) => name)}
              words={Object.fromEntries(index.metrics.map(({ name }) => [name, metricWords(name)]))}
              chosen={metric.name}
              onChoose={(name) => (location.hash = metricAddress(name))}
            />
            <Scale
              ramp={ramp}
              ticks={[low, high].map((end, at) => [at, digits(end)] as const)}
              label={metricWords(metric.name)}
            />
          </div>
        )}
        <p class="atlas-says muted">
          <bdi>{metric ? metric.says || metricWords(metric.name) : "The tree has no metrics."}</bdi>
        </p>
        <HeadTiles view={view} metric={metric} />
      </section>
    </>
  );
}

function HeadTiles({ view, metric }: { view: TreeView; metric: TreeMetric | undefined }) {
  const ramp = useMemo(() => wordRamp(weightRamp(view.dark)), [view.dark]);
  const { heads } = view.index;
  const { layers, rows } = rowsOf(heads.map(([layer, head]) => ({ layer, head })));
  const columns = 1 + Math.max(...heads.map(([, head]) => head));
  const range = rangeOf(metric?.values ?? []);
  const first = rows[0]?.[0];
  const tile = (at: number) => {
    const [layer, head] = heads[at];
    const value = metric?.values[at] ?? null;
    const byte = value === null ? 0 : byteOf(partOf(value, range));
    return (
      <a
        key={at}
        class="tree-tile stack slim"
        href={headAddress(layer, head)}
        data-tile={`${layer}-${head}`}
        data-unknown={value === null || undefined}
        tabIndex={at === first ? 0 : -1}
        aria-label={`Head ${layer}-${head}${metric ? `: ${metricWords(metric.name)} ${digits(value)}` : ""}`}
        title={`Head ${layer}-${head}${metric ? `\n${metricWords(metric.name)} ${digits(value)}` : ""}`}
        style={{
          "grid-column": head + 2,
          ...(value === null ? {} : { background: rampCss(ramp, byte), color: inkOn(view.dark, byte) }),
        }}
      >
        <span>{digits(value)}</span>
      </a>
    );
  };
  return <HeadGrid layers={layers} rows={rows} columns={columns} tile={tile} />;
}

/** The byte of a ramp for a part: even the smallest value is coloured a little, since it is known. */
function byteOf(part: number): number {
  return Math.round(20 + 235 * part);
}

/** Black or white, on the colour of a byte. */
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
