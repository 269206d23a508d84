import { added, carried, ranked } from "../../draw/neurons";
import { scoreByDistance } from "../../draw/rotary";
import { biasAt } from "../../draw/scores";
import { readable } from "../../state/label";
import type { Store } from "../../state/store";
import { percent, shortWeight, signedNumber } from "../../state/words";
import { countFor, type NeuronTable } from "./table";

/** The pinned key of a query: how its score is made up, neuron by neuron. */
export function PairDetail({ store, table }: { store: Store; table: NeuronTable }) {
  const [key] = store.pins.value.key;
  const shown = store.shown.value;
  if (key === undefined || !shown?.scores) {
    return <p class="note">The + beside a key shows what each neuron adds to its score.</p>;
  }
  const parts = shown.scores;
  const contributions = added(parts, table.head, table.query, key);
  const order = ranked(contributions);
  const shares = carried(contributions, order);
  const most = Math.abs(contributions[order[0]]);
  const [from, to] = [shown.stack.query.labels[table.query], shown.stack.key.labels[key]].map(
    (it) => readable(it).text,
  );
  return (
    <section class="pair-detail" aria-label="Neurons of one pair" data-pair-detail>
      <p class="formula">
        <bdi>{from}</bdi> → <bdi>{to}</bdi>: {formula(store, table, key)}
      </p>
      <div class="contributions" aria-hidden="true">
        {order.map((feature) => (
          <span key={feature} title={`neuron ${feature}: ${signedNumber(contributions[feature])}`}>
            <i
              data-negative={contributions[feature] < 0 || undefined}
              style={{ "--part": Math.abs(contributions[feature]) / most }}
            />
          </span>
        ))}
      </div>
      <p class="note" data-pair-carried>
        The first 4 of {table.features} neurons carry {percent(shares[3] ?? 1)} of all that is added to this score, 80 %
        needs {countFor(0.8, shares)}; largest:{" "}
        {order
          .slice(0, 4)
          .map((feature) => `${feature} (${signedNumber(contributions[feature])})`)
          .join(", ")}
      </p>
      {store.shown.value?.layer.rotary && <ByDistance store={store} table={table} at={key} />}
    </section>
  );
}

/** "q · k 12.1 × scale 0.177 = 2.14, bias −0.3 → score 1.84 → weight .21" */
function formula(store: Store, table: NeuronTable, key: number): string {
  const parts = store.shown.value?.scores;
  if (!parts) return "";
  const bias = biasAt(parts, parts.bias, table.head, table.query, key);
  const steps = [
    `q · k ${signedNumber(table.dots[key])} × scale ${parts.scale.toPrecision(3)} = ${signedNumber(table.dots[key] * parts.scale)}`,
    ...(parts.softCap === null ? [] : [`cap ${parts.softCap}`]),
    ...(parts.bias ? [`bias ${signedNumber(bias)}`] : []),
    `score ${signedNumber(table.scores[key])}`,
    `weight ${shortWeight(table.weights[key])}`,
  ];
  return steps.join(" → ");
}

const CHART = { width: 480, height: 90 };
const FARTHEST = 64;

/** The score of this pair at other distances, for models that turn queries and keys by their position. */
function ByDistance({ store, table, at }: { store: Store; table: NeuronTable; at: number }) {
  const parts = store.shown.value?.scores;
  const rotary = store.shown.value?.layer.rotary;
  if (!parts || !rotary) return null;
  const distances = Array.from({ length: FARTHEST + 1 }, (_, distance) => distance);
  const scores = scoreByDistance(parts, rotary, table.head, [table.query, at], distances);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const x = (distance: number) => (distance / FARTHEST) * CHART.width;
  const y = (score: number) => CHART.height - 4 - ((score - low) / (high - low || 1)) * (CHART.height - 8);
  const path = distances.map((distance) => `${x(distance).toFixed(1)},${y(scores[distance]).toFixed(1)}`).join(" ");
  const now = table.query - at;
  return (
    <figure class="by-distance" data-by-distance>
      <figcaption class="view-note">
        score of this pair if they stood 0 to {FARTHEST} tokens apart (now {now}): {signedNumber(low)} to{" "}
        {signedNumber(high)}
      </figcaption>
      <svg viewBox={`0 0 ${CHART.width} ${CHART.height}`} aria-hidden="true">
        <polyline points={path} />
        {now >= 0 && now <= FARTHEST && <circle cx={x(now)} cy={y(scores[now])} r="4" />}
      </svg>
    </figure>
  );
}
