import type { ReadonlySignal } from "@preact/signals-core";
import { useRef } from "preact/hooks";
import type { Evidence } from "../source/evidence";
import { headName, headPlace, headWords, measured, measureNumber, ranked } from "../state/evidence";
import { openHead } from "../state/selection";
import type { Store } from "../state/store";
import { type GridThumbs, moveCell, useThumbs } from "./HeadGrid";
import { isDimmed, TileLabels } from "./TileLabels";
import { useWidth } from "./useWidth";

interface RankedGridProps {
  store: Store;
  evidence: Evidence;
  sort: string;
  thumbs: ReadonlySignal<GridThumbs | null>;
  gap: number;
  onOpen: () => void;
  onDrawn: (canvas: HTMLElement, side: number) => void;
}

/** Side of a thumbnail with its name and number, in pixels. */
const SIDE = 84;

/** All heads in the order of a measure, each with its name. */
export function RankedGrid({ store, evidence, sort, thumbs, gap, onOpen, onDrawn }: RankedGridProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const heads = ranked(evidence, sort);
  const columns = Math.max(2, Math.floor(width.value / (SIDE + gap)));
  const pitch = Math.max(40, Math.floor(width.value / columns));
  useThumbs(root, { store, thumbs, pitch: width.value && pitch, gap, onDrawn, order: { heads, columns } });
  const { stack } = evidence;
  const name = sort.replace(/^-/, "");
  const values = measured(evidence, name);
  const isChosen = (head: number) =>
    headPlace(stack, head).layer === store.layerNumber.value && store.heads.value.includes(head % stack.heads);
  const tabbed = heads.find(isChosen) ?? heads[0];
  return (
    <div
      class="head-grid ranked"
      ref={root}
      role="group"
      aria-label={`All heads by ${name}`}
      onKeyDown={(event) => moveCell(event, columns, Math.ceil(heads.length / columns))}
      style={{
        "--grid-pitch": `${pitch}px`,
        "--grid-gap": `${gap}px`,
        "--grid-heads": columns,
        "--grid-labels": "0px",
      }}
    >
      <div class="grid-rows">
        <div class="grid-canvas" aria-hidden="true">
          <canvas data-canvas="grid" />
        </div>
        <div class="ranked-cells">
          {heads.map((head) => {
            const { layer, head: number } = headPlace(stack, head);
            const value = measureNumber(evidence, name, values[head]);
            const said = [`${name} ${value}`, headWords(evidence, head)].filter(Boolean).join("; ");
            return (
              <button
                key={head}
                class="grid-cell"
                data-cell={`${layer}-${number}`}
                data-dim={isDimmed(store, head) || undefined}
                aria-pressed={isChosen(head)}
                tabIndex={head === tabbed ? 0 : -1}
                title={`Layer ${layer}, head ${number}: ${said}`}
                style={{ "--color": store.palette.value[head % stack.heads] }}
                onClick={(event) => {
                  store.select((now) => openHead(now, layer, number, stack, event.shiftKey));
                  if (!event.shiftKey) onOpen();
                }}
              >
                <span class="cell-name">
                  <b>{headName(evidence, head)}</b> {value.replace(/ .*/, "")}
                </span>
                <span class="spoken">: {said}</span>
                <TileLabels store={store} head={head} side={pitch - gap} />
              </button>
            );
          })}
        </div>
      </div>
    </div>
  );
}
