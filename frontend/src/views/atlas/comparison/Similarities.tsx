import { shortShare } from "../../../state/atlas";
import { pairName } from "../../../state/atlasComparison";
import type { ComparisonView } from "./view";

const WIDE = 640;
const DOT = 8;
const HIGH = 74;

/** The similarity of each pair as a dot, next to what matchings by chance give. */
export function Similarities({ view: { index } }: { view: ComparisonView }) {
  const { pairs, chance, different, similarity } = index;
  const least = Math.min(chance, different ?? 1, ...pairs.map((pair) => pair.similarity)) - 0.02;
  const x = (value: number) => 8 + ((WIDE - 16) * (value - least)) / (1 - least);
  const dots = stacked(pairs.map((pair) => x(pair.similarity)));
  const highest = Math.max(1, ...dots.map(({ level }) => level + 1));
  const step = Math.min(DOT, (HIGH - 14) / highest);
  return (
    <section class="card atlas-card twin-similarities" aria-label="How similar matched heads are">
      <div class="twin-numbers">
        <p>
          <b>{shortShare(similarity)}</b> matched heads
        </p>
        <p data-line="different">
          <b>{shortShare(different)}</b> different heads of one atlas, matched in the same way
        </p>
        <p data-line="chance">
          <b>{shortShare(chance)}</b> random pairs
        </p>
      </div>
      <figure>
        <svg viewBox={`0 0 ${WIDE} ${HIGH + 18}`} role="img" aria-label="Similarity of each pair, up to 1">
          <path class="twin-axis" d={`M0 ${HIGH}H${WIDE}`} />
          {dots.map(({ place, level }, number) => (
            <circle key={number} cx={place} cy={HIGH - 5 - level * step} r={Math.min(3.4, step * 0.46)}>
              <title>
                {pairName(index, pairs[number])}: {shortShare(pairs[number].similarity)}
              </title>
            </circle>
          ))}
          <path class="twin-chance" d={`M${x(chance)} 4V${HIGH}`} />
          {different !== null && <path class="twin-different" d={`M${x(different)} 4V${HIGH}`} />}
          <text x={x(chance)} y={HIGH + 13} text-anchor="middle">
            random {shortShare(chance)}
          </text>
          {different !== null && Math.abs(x(different) - x(chance)) > 90 && (
            <text x={x(different)} y={HIGH + 13} text-anchor="middle">
              different {shortShare(different)}
            </text>
          )}
          <text x={WIDE} y={HIGH + 13} text-anchor="end">
            the same 1
          </text>
        </svg>
      </figure>
      <p class="fine">
        A dot is a pair of matched heads. Similarity is the mean of {index.parts.length} parts ({index.parts.join(", ")}
        ). Where dots lie left of the line of different heads, a match says nothing about which heads are the same.
      </p>
    </section>
  );
}

/** Dots beside each other are stacked, from the left. */
function stacked(places: readonly number[]): { place: number; level: number }[] {
  const counts = new Map<number, number>();
  return places.map((place) => {
    const bin = Math.round(place / DOT);
    const level = counts.get(bin) ?? 0;
    counts.set(bin, level + 1);
    return { place: bin * DOT, level };
  });
}
