import { Mark } from "../../../parts/Mark";
import { pairAddress, pairName } from "../../../state/atlasComparison";
import type { ComparisonView } from "./view";

/** The labels that only one head of a pair holds. */
export function LabelChanges({ view }: { view: ComparisonView }) {
  const { index } = view;
  const lists = [
    { title: `Labels gained`, says: `held in ${index.names[1]} only`, of: "gained" },
    { title: `Labels lost`, says: `held in ${index.names[0]} only`, of: "lost" },
  ] as const;
  return (
    <div class="twin-labels">
      {lists.map(({ title, says, of }) => {
        const mine = index.pairs.flatMap((pair, number) => pair[of].map((name) => ({ name, number })));
        return (
          <section key={of} class="card atlas-card" aria-label={title}>
            <h2>
              {title} <small>{says}</small>
            </h2>
            {mine.length === 0 && <p class="fine">None.</p>}
            <ul>
              {mine.map(({ name, number }) => (
                <li key={`${number} ${name}`}>
                  <a class="label-chip" href={pairAddress(index, number)}>
                    <Mark shape={view[of === "gained" ? "b" : "a"].marks.get(name)} />
                    <bdi>{name}</bdi> <small>{pairName(index, index.pairs[number])}</small>
                  </a>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}
