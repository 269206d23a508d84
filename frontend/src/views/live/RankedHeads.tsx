import { walkTiles } from "../../parts/walkTiles";
import { openHead } from "../../state/selection";
import type { Store } from "../../state/store";

/** A head in an order, with a bar and a number. */
interface RankedHead {
  readonly layer: number;
  readonly head: number;
  /** Of the longest bar. */
  readonly part: number;
  readonly text: string;
  readonly isBelow?: boolean;
}

interface RankedHeadsProps {
  store: Store;
  /** They are found by it: `data-sketched-head`. */
  name: "sketched" | "matters";
  label: string;
  heads: readonly RankedHead[];
}

/** Heads in an order; each opens. Tab reaches the first, arrows the others. */
export function RankedHeads({ store, name, label, heads }: RankedHeadsProps) {
  const mark = `data-${name}-head`;
  return (
    <ol class="live-likest" data-ranked={name} aria-label={label} onKeyDown={(event) => walkTiles(event, 1, "button")}>
      {heads.map(({ layer, head, part, text, isBelow }, place) => (
        <li key={`${layer}-${head}`}>
          <button
            {...{ [mark]: `${layer}-${head}` }}
            tabIndex={place === 0 ? 0 : -1}
            onClick={() => store.select((now) => openHead(now, layer, head, store.pieceStack.peek()))}
          >
            <b>
              {layer}-{head}
            </b>
            <i data-below={isBelow || undefined} style={{ "--part": part }} />
            <span class="number">{text}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}
