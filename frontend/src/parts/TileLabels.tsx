import { isFiltered, toldLabels, wantedLabels } from "../state/evidence";
import type { Store } from "../state/store";
import { shortWeight } from "../state/words";
import { Mark, useMarks } from "./Mark";

/** Sides of a tile, in pixels, from which on it has room for one mark, for three, and for scores. */
const [ONE, THREE, SCORES] = [16, 30, 62];

/** The labels of a head on its thumbnail: as many as it has room for. */
export function TileLabels({ store, head, side }: { store: Store; head: number; side: number }) {
  const marks = useMarks(store);
  const evidence = store.evidence.value;
  if (!evidence || side < ONE) return null;
  const selection = store.selection.value;
  const wanted = wantedLabels(evidence, head, selection);
  const labels = wanted.length > 0 ? wanted : toldLabels(evidence, head);
  if (labels.length === 0) return null;
  const [first] = labels;
  return (
    <span class="tile-labels" aria-hidden="true">
      {labels.slice(0, side < THREE ? 1 : 3).map((label) => (
        <span key={label.name} class="tile-label" data-once={label.status === "once" || undefined}>
          <Mark shape={marks[label.pattern]} size={side < THREE ? 8 : 10} />
          {side >= SCORES && label === first && shortWeight(label.score)}
        </span>
      ))}
    </span>
  );
}

/** Whether the reader asks for other heads than this one. */
export function isDimmed(store: Store, head: number): boolean {
  const evidence = store.evidence.value;
  const selection = store.selection.value;
  return evidence !== null && isFiltered(selection) && wantedLabels(evidence, head, selection).length === 0;
}
