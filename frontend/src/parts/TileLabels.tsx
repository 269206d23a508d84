import { isFiltered, toldLabels, wantedLabels } from "../state/evidence";
import { distance } from "../state/moved";
import type { Store } from "../state/store";
import { shortWeight } from "../state/words";
import { Mark, useMarks } from "./Mark";

/** Sides of a tile, in pixels, from which on it has room for a small mark, for larger ones, and for a score. */
const [SMALL, LARGE, SCORES] = [16, 30, 62];
/** Width of a mark with its frame and of a score, in pixels; as many labels as are ever shown. */
const [MARK, SCORE, MOST] = [15, 22, 3];

function roomFor(side: number): number {
  const room = side - 4 - (side >= SCORES ? SCORE : 0);
  return side < LARGE ? 1 : Math.max(1, Math.min(MOST, Math.floor(room / MARK)));
}

/** The labels of a head on its thumbnail: as many as it has room for. */
export function TileLabels({ store, head, side }: { store: Store; head: number; side: number }) {
  const marks = useMarks(store);
  const evidence = store.evidence.value;
  const moved = movedOf(store, head);
  if (moved && side >= SCORES)
    return (
      <span class="tile-labels tile-moved" aria-hidden="true">
        {moved}
      </span>
    );
  if (!evidence || side < SMALL) return null;
  const selection = store.selection.value;
  const wanted = wantedLabels(evidence, head, selection);
  const labels = wanted.length > 0 ? wanted : toldLabels(evidence, head);
  if (labels.length === 0) return null;
  const [first] = labels;
  return (
    <span class="tile-labels" aria-hidden="true">
      {labels.slice(0, roomFor(side)).map((label) => (
        <span key={label.name} class="tile-label" data-candidate={label.status === "candidate" || undefined}>
          <Mark shape={marks[label.pattern]} size={side < LARGE ? 8 : 10} />
          {side >= SCORES && label === first && shortWeight(label.score)}
        </span>
      ))}
    </span>
  );
}

/** How far a head moved, as a number; empty where weights are shown or nothing is compared. */
function movedOf({ stack, quantity }: Store, head: number): string {
  const { moved, heads } = stack.value;
  const value = quantity.value.name === "weight" ? null : moved?.values[Math.floor(head / heads)][head % heads];
  return typeof value === "number" ? distance(value) : "";
}

/** Whether the reader asks for other heads than this one. */
export function isDimmed(store: Store, head: number): boolean {
  const evidence = store.evidence.value;
  const selection = store.selection.value;
  return evidence !== null && isFiltered(selection) && wantedLabels(evidence, head, selection).length === 0;
}
