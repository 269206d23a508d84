import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { topLift } from "../../draw/lift";
import { paintMatrix } from "../../draw/thumbs";
import type { ViewParts } from "../../parts/mount";
import { reportDrawn } from "../../parts/mount";
import { Scale } from "../../parts/Scale";
import { density, putPixels, useWidth } from "../../parts/useWidth";
import { ARROWS } from "../../parts/walkTiles";
import { liftTicks } from "../../state/quantity";
import { chooseSentence, chosenSentence, liftsOfSentence, sentenceName } from "../../state/sentences";
import { times } from "../../state/words";

/** Width of the names of sentences, height of what stands below, and least distance of two names. */
const [NAMES, BELOW, LEAST] = [170, 64, 15];

/** One head of a long text: which sentence looks at which. */
export function SentenceMap({ store, room, plain = false, names }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const pointed = useSignal<readonly [query: number, key: number] | null>(null);
  // Names would leave no room for the map of a small picture; of those in a row only the first has some.
  const beside = useComputed(() => (plain && width.value < 2 * NAMES ? 0 : NAMES));
  const named = names === "none" ? 0 : beside.value;
  const side = useComputed(() => Math.max(120, Math.min(width.value - beside.value - 8, room.value - BELOW)));
  const stack = store.stack.value;
  const { query: rows, key: columns } = stack.sentences ?? { query: [], key: [] };
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [thumbs, shown, head] = [store.thumbs.value, store.shown.value, store.full.value];
    if (!canvas || !thumbs || head >= thumbs.heads || width.value === 0) return;
    const size = Math.round(side.value * density());
    const picture = { pixels: new Uint32Array(size * size), width: size };
    paintMatrix(picture, { head, left: 0, top: 0, size }, thumbs, store.ramp.value);
    putPixels(canvas, new Uint8ClampedArray(picture.pixels.buffer), { width: size, height: size });
    if (shown) reportDrawn(canvas, store, shown);
  });
  const chosen = chosenSentence(store);
  const at = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (point: number, count: number) => Math.max(0, Math.min(count - 1, Math.floor(point * count)));
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    return [part(y, rows.length), part(x, columns.length)] as const;
  };
  const [row, column] = pointed.value ?? [chosen, null];
  const every = Math.ceil(LEAST / (side.value / rows.length));
  const pitch = side.value / rows.length;
  return (
    <div class="sentence-map stack slim" ref={root} data-sentences={rows.length}>
      <div class="sentence-plane flex">
        <div
          class="sentence-names muted relative"
          aria-hidden="true"
          style={{ width: `${named}px`, height: `${side.value}px` }}
        >
          {rows.map((_, sentence) =>
            (sentence % every === 0 && Math.abs(sentence - row) * pitch >= LEAST) || sentence === row ? (
              <span
                key={sentence}
                data-at={sentence === row || undefined}
                style={{ top: `${(sentence + 0.5) * pitch}px` }}
              >
                {sentence + 1} <bdi>{sentenceName(stack, "query", sentence, 24)}</bdi>
              </span>
            ) : null,
          )}
        </div>
        <div
          class="sentence-cells relative"
          role="group"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows go from sentence to sentence here
          tabIndex={0}
          aria-label="Sentences: arrows choose one"
          style={{ width: `${side.value}px`, height: `${side.value}px` }}
          onPointerMove={(event) => (pointed.value = at(event))}
          onPointerLeave={() => (pointed.value = null)}
          onClick={(event) => chooseSentence(store, ...at(event))}
          onKeyDown={(event) => {
            const step = ARROWS[event.key]?.[0];
            if (!step) return;
            event.preventDefault();
            chooseSentence(store, Math.max(0, Math.min(rows.length - 1, chosen + step)));
          }}
        >
          <canvas data-canvas="sentences" />
          <span class="sentence-row" style={{ top: `${chosen * pitch}px`, height: `${pitch}px` }} />
        </div>
      </div>
      <p class="view-note muted" data-status aria-live="polite">
        {row + 1} “<bdi>{sentenceName(stack, "query", row)}</bdi>”
        {column === null
          ? ` is read${plain ? "" : ". Click a row to read what it looks at."}`
          : ` → ${column + 1} “${sentenceName(stack, "key", column)}”: ${times(liftsOfSentence(store, row)?.[column] ?? 0)} even`}
      </p>
      {!plain && (
        <Scale
          ramp={store.ramp.value}
          ticks={liftTicks(topLift(stack.key.labels.length))}
          label="times the even share"
        />
      )}
    </div>
  );
}
