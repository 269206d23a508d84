import type { TreeHead, TreeTable } from "../../source/atlas";
import * as atlas from "../../state/atlas";
import { counted } from "../../state/words";
import { type AtlasView, Card, Histogram, Table } from "./parts";
import { Strata, TextPage } from "./Texts";

type TreeHeadProps = { view: AtlasView; place: atlas.AtlasPlace; at: number; said: TreeHead };

/** What a tree of HeadVis says of one head; or one text as it sees it. */
export function TreeHeadParts({ view, place: { head, text }, at, said }: TreeHeadProps) {
  const { sequences, strata, plots, tables, statistics } = said;
  const [layer, number] = head ?? [0, 0];
  const sequence = text === null ? undefined : sequences[text];
  if (sequence)
    return (
      <TextPage
        dark={view.dark}
        text={atlas.treeText(sequence)}
        title={`Text ${sequence.name}`}
        score={`largest weight ${atlas.digits(sequence.largest)}`}
        kept={`Of the head's attention on this text: ${atlas.notKeptWords(atlas.meanOf(sequence.rest))}.`}
        head={[layer, number]}
      />
    );
  return (
    <div class="atlas-page tree-page stack top">
      <Card label="Metrics" title="Metrics">
        <Table
          class="tree-metrics"
          head={["metric", "value", "among heads"]}
          rows={(view.index.metrics ?? []).map(({ name, values, parts, places }) => [
            <a href={atlas.findAddress(name)}>{name}</a>,
            { text: atlas.digits(values[at]), part: parts[at] ?? 0 },
            values[at] === null ? "–" : places[at],
          ])}
          marks={(row) => ({ title: view.index.metrics?.[row].says ?? "" })}
        />
        <Table rows={statistics.map(([name, value, format]) => [name, atlas.statisticText(value, format)])} />
      </Card>
      {plots.length > 0 && (
        <Card label="Histograms" title="Histograms">
          <div class="tree-plots stack">
            {plots.map((plot) => (
              <Histogram key={plot.label} plot={plot} />
            ))}
          </div>
        </Card>
      )}
      <Strata
        dark={view.dark}
        title="Examples, by the largest weight outside row and column 0"
        strata={strata.map(([stratum, texts], place) => ({
          name: stratum === 0 ? "Texts" : `Stratum ${stratum}${place === 0 && stratum > 1 ? ", the strongest" : ""}`,
          count: `${counted(texts.length, "text")} shown`,
          texts: texts.map((of) => ({
            href: atlas.headAddress(layer, number, of),
            text: atlas.treeText(sequences[of]),
            score: atlas.digits(sequences[of].largest),
          })),
        }))}
        note="A tree holds the largest weights of each row; what is not kept was cut, and need not be 0."
      >
        {strata.length === 0 && <p class="fine">The tree has no texts of this head.</p>}
      </Strata>
      {tables.length > 0 && (
        <Card class="tree-wide" label="Tokens" title="Tokens">
          <div class="tree-tables stack">{tables.map(tokensOf)}</div>
        </Card>
      )}
    </div>
  );
}

const ROWS = 15;

/** Tokens with their weights. */
function tokensOf({ label, description, rows }: TreeTable) {
  const most = Math.max(...rows.map(([, weight]) => weight), Number.MIN_VALUE);
  const shown = rows.slice(0, ROWS).map(([token, weight]) => {
    return [<bdi>{atlas.tokenName(token)}</bdi>, { text: atlas.digits(weight), part: weight / most }] as const;
  });
  const caption = [<b key="label">{label}</b>, description && ` – ${description}`];
  return <Table key={label} class="tree-tokens" caption={caption} rows={shown} />;
}
