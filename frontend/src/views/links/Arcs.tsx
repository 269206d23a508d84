import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { arcLevels, arcPath, type Ends } from "../../draw/arcs";
import type { Side } from "../../draw/place";
import { followSize } from "../../parts/followSize";
import { readable } from "../../state/label";
import type { Choice } from "../../state/links";
import type { LinkParts } from "./LinksPanel";

/** Pixels between arcs that run above each other: of the gold ones, which have names, and of the others. */
const [GOLD_STEP, STEP] = [19, 12];
const TIP = 5;

interface Arc extends Ends {
  readonly label: string;
  readonly hit: boolean;
  readonly width: number;
}

interface ArcsProps {
  parts: LinkParts;
  choices: readonly Choice[];
  /** The side on which a dependent is pointed at. */
  side: Side;
}

/** The words in one row, gold links above and what is chosen below. */
export function Arcs({ parts, choices, side }: ArcsProps) {
  const { links, store } = parts;
  const row = useRef<HTMLDivElement>(null);
  const middles = useSignal<readonly number[]>([]);
  useLayoutEffect(() => {
    const words = row.current;
    if (!words) return;
    return followSize(words, () => {
      const now = Array.from(words.children, (word) => {
        const { offsetLeft, offsetWidth } = word as HTMLElement;
        return offsetLeft + offsetWidth / 2;
      });
      if (now.join() !== middles.peek().join()) middles.value = now;
    });
  }, [links]);
  const chosenBy = new Map(choices.map(({ word, chosen }) => [word, chosen]));
  const gold = links.arcs.map((arc) => ({ ...arc, hit: chosenBy.get(arc.dependent) === arc.head, width: 1.4 }));
  const chosen = choices
    .filter((choice) => choice.chosen >= 0)
    .map(({ word, chosen: head, weight, hit }) => ({ dependent: word, head, label: "", hit, width: 1 + 2 * weight }));
  const token = store.pair.value[side];
  const active = token === null ? -1 : links.words.findIndex(({ tokens }) => tokens.includes(token));
  const only = store.heads.value.length === 1;
  const color = only ? store.palette.value[store.heads.value[0]] : "var(--accent)";
  const widths = roomFor(gold);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard
    <div class="links-scroll" role="img" aria-label="The same as arcs over and under the words" tabIndex={0}>
      <div class="links-arcs" style={{ "--color": color }} data-active={active >= 0 || undefined}>
        <Half arcs={gold} middles={middles.value} step={GOLD_STEP} active={active} />
        <div class="links-row" ref={row} dir="auto" onPointerLeave={() => store.preview({})}>
          {links.words.map(({ label }, word) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut to what the buttons of the list do
            // biome-ignore lint/a11y/useKeyWithClickEvents: the buttons of the list take the keyboard
            <span
              key={word}
              data-word={word}
              onPointerOver={() => parts.preview(word)}
              onClick={() => parts.pin(word)}
              data-active={word === active || undefined}
              style={{ minWidth: widths[word] && `${widths[word]}px` }}
            >
              {readable(label).text}
            </span>
          ))}
        </div>
        <Half arcs={chosen} middles={middles.value} step={STEP} active={active} below />
      </div>
    </div>
  );
}

interface HalfProps {
  arcs: readonly Arc[];
  middles: readonly number[];
  step: number;
  active: number;
  below?: boolean;
}

function Half({ arcs, middles, step, active, below = false }: HalfProps) {
  const levels = arcLevels(arcs);
  const height = step * Math.max(1, ...levels) + 2 * TIP + 4;
  if (middles.length === 0) return null;
  return (
    <svg height={height} aria-hidden="true" data-half={below ? "chosen" : "gold"}>
      <g transform={below ? `matrix(1 0 0 -1 0 ${height})` : undefined}>
        {arcs.map(({ dependent, head, label, hit, width }, number) => {
          const [from, to] = [middles[head], middles[dependent]];
          const rise = step * levels[number];
          return (
            <g
              key={number}
              data-arc={`${dependent}-${head}`}
              data-hit={hit || undefined}
              data-active={dependent === active || undefined}
            >
              <path d={arcPath(from, to, rise, height - TIP)} stroke-width={width} />
              <path class="tip" d={`M${to - 3.5} ${height - TIP - 1}h7l-3.5 ${TIP + 1}z`} />
              {label && (
                <text x={(from + to) / 2} y={height - TIP - rise + 3}>
                  {readable(label).text}
                </text>
              )}
            </g>
          );
        })}
      </g>
    </svg>
  );
}

/** Pixels that neighbours need between them for the name of the link that joins them. */
function roomFor(arcs: readonly Arc[]): number[] {
  const room: number[] = [];
  for (const { dependent, head, label } of arcs) {
    if (Math.abs(dependent - head) > 1) continue;
    for (const word of [dependent, head]) room[word] = Math.max(room[word] ?? 0, 6 * label.length + 18);
  }
  return room;
}
