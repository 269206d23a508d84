import { useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { SCATTER_AXES } from "../../contract/values";
import { AxisChoice, EvidenceBar } from "../../parts/EvidenceBar";
import { Mark, useMarks } from "../../parts/Mark";
import type { ViewParts } from "../../parts/mount";
import { reportDrawn } from "../../parts/Themed";
import { isDimmed } from "../../parts/TileLabels";
import { useWidth } from "../../parts/useWidth";
import type { Evidence } from "../../source/evidence";
import {
  axisTitle,
  headName,
  headPlace,
  headWords,
  isFiltered,
  MAP,
  measured,
  measureNumber,
  toldLabels,
  wantedLabels,
} from "../../state/evidence";
import { openHead } from "../../state/selection";
import type { Store } from "../../state/store";
import { counted } from "../../state/words";
import { type Dot, dotsOf, equalScales, nextDot, partOf, placeNames, type Scale, scaleOf } from "./layout";

/** Room for the numbers and titles of the axes, in pixels. */
const [LEFT, BOTTOM, LOWEST, HIGHEST] = [52, 40, 260, 620];

/** Heads as dots: by two of their measures, or like heads close together. */
export function ScatterView({ store, room }: ViewParts) {
  const evidence = store.evidence.value;
  if (evidence) return <Scatter store={store} evidence={evidence} height={room.value} />;
  const { stack } = store.page.evidence ?? {};
  return (
    <p class="note" data-no-evidence>
      {stack === store.stack.value.name ? "" : `The evidence of this page is of the stack “${stack}”.`}
    </p>
  );
}

interface ScatterProps {
  store: Store;
  evidence: Evidence;
  height: number;
}

function Scatter({ store, evidence, height: room }: ScatterProps) {
  const plane = useRef<HTMLDivElement>(null);
  const width = useWidth(plane);
  useSignalEffect(() => {
    if (width.value > 0 && store.shown.value) reportDrawn(plane.current, store, store.shown.value);
  });
  const { x, y } = chosenAxes(store, evidence);
  const height = Math.max(LOWEST, Math.min(HIGHEST, room - 110, width.value * 0.8));
  const size = { width: Math.max(1, width.value), height };
  const [across, up, scales] = drawnValues(evidence, x, y, size);
  const dots = dotsOf(across, up, scales, size);
  return (
    <div class="scatter-view">
      <EvidenceBar store={store} />
      <Axes store={store} evidence={evidence} x={x} y={y} />
      <div class="scatter" style={{ padding: x === MAP ? 0 : `0 0 ${BOTTOM}px ${LEFT}px` }}>
        <div
          class="scatter-plane"
          ref={plane}
          style={{ height: `${height}px` }}
          data-scatter={x === MAP ? MAP : `${x},${y}`}
        >
          {x !== MAP && <Ticks evidence={evidence} x={x} y={y} scales={scales} />}
          <Dots store={store} evidence={evidence} dots={dots} size={size} axes={x === MAP ? [] : [x, y]} />
        </div>
      </div>
      {x === MAP && <MapNote store={store} evidence={evidence} />}
      <p class="note">Point at a dot for its evidence, click to choose the head, double click to see its attention.</p>
    </div>
  );
}

function chosenAxes(store: Store, { said }: Evidence): { x: string; y: string } {
  const [{ x, y }, names] = [store.selection.value, said.measures.map(({ name }) => name)];
  const usual = (wanted: string, at: number) => (names.includes(wanted) ? wanted : names[at]);
  return { x: x ?? usual(SCATTER_AXES[0], 0), y: y ?? usual(SCATTER_AXES[1], 1) };
}

type Size = { readonly width: number; readonly height: number };

function drawnValues(
  evidence: Evidence,
  x: string,
  y: string,
  size: Size,
): readonly [ArrayLike<number>, ArrayLike<number>, readonly [Scale, Scale]] {
  const { places } = evidence;
  if (x === MAP && places) {
    const direction = (at: number) => places.filter((_, number) => number % 2 === at);
    const [across, up] = [direction(0), direction(1)];
    return [across, up, equalScales(across, up, size)];
  }
  const [across, up] = [measured(evidence, x), measured(evidence, y)];
  return [across, up, [scaleOf(across, Math.max(2, size.width / 80)), scaleOf(up, Math.max(2, size.height / 60))]];
}

interface AxesProps {
  store: Store;
  evidence: Evidence;
  x: string;
  y: string;
}

function Axes({ store, evidence, x, y }: AxesProps) {
  return (
    <div class="view-bar">
      <AxisChoice
        evidence={evidence}
        label="x axis"
        chosen={x}
        first={evidence.places ? [[MAP, "map of like heads"]] : []}
        onChoose={(name) => store.choose({ x: name })}
      />
      {x !== MAP && (
        <AxisChoice evidence={evidence} label="y axis" chosen={y} onChoose={(name) => store.choose({ y: name })} />
      )}
    </div>
  );
}

interface TicksProps {
  evidence: Evidence;
  x: string;
  y: string;
  scales: readonly [Scale, Scale];
}

function Ticks({ evidence, x, y, scales: [across, up] }: TicksProps) {
  return (
    <div class="scatter-ticks" aria-hidden="true">
      {across.ticks.map((tick) => (
        <span key={`x${tick}`} class="tick-x" style={{ left: `${100 * partOf(across, tick)}%` }}>
          {tick}
        </span>
      ))}
      {up.ticks.map((tick) => (
        <span key={`y${tick}`} class="tick-y" style={{ bottom: `${100 * partOf(up, tick)}%` }}>
          {tick}
        </span>
      ))}
      <span class="title-x">{axisTitle(evidence, x)}</span>
      <span class="title-y">{axisTitle(evidence, y)}</span>
    </div>
  );
}

interface DotsProps {
  store: Store;
  evidence: Evidence;
  dots: readonly Dot[];
  size: Size;
  axes: readonly string[];
}

function Dots({ store, evidence, dots, size, axes }: DotsProps) {
  const root = useRef<HTMLDivElement>(null);
  // Hundreds of dots are not rendered anew for each that the pointer passes.
  useSignalEffect(() => {
    const head = store.hoverHead.value;
    root.current?.querySelector("[data-hover]")?.removeAttribute("data-hover");
    root.current?.querySelector(`[data-at="${head}"]`)?.setAttribute("data-hover", "");
  });
  const names = namesOf(store, evidence, dots, size);
  const chosen = dots.filter(({ head }) => isChosen(store, evidence, head));
  const tabbed = (chosen[0] ?? dots[0])?.head;
  const open = (head: number, add: boolean) => {
    const { layer, head: number } = headPlace(evidence.stack, head);
    store.select((now) => openHead(now, layer, number, evidence.stack, add));
  };
  return (
    <div
      ref={root}
      role="group"
      aria-label="Heads"
      onKeyDown={(event) => moveDot(event, dots)}
      onPointerLeave={() => {
        store.hoverHead.value = null;
      }}
    >
      {dots.map((dot) => (
        <DotButton
          key={dot.head}
          store={store}
          evidence={evidence}
          dot={dot}
          axes={axes}
          tabbed={dot.head === tabbed}
          onChoose={(add) => open(dot.head, add)}
        />
      ))}
      {names.map(({ head, x, y, text }) => (
        <span key={head} class="dot-name" aria-hidden="true" style={{ left: `${x}px`, top: `${y}px` }}>
          {text}
        </span>
      ))}
    </div>
  );
}

interface DotButtonProps {
  store: Store;
  evidence: Evidence;
  dot: Dot;
  axes: readonly string[];
  tabbed: boolean;
  onChoose: (add: boolean) => void;
}

function DotButton({ store, evidence, dot: { head, x, y }, axes, tabbed, onChoose }: DotButtonProps) {
  const marks = useMarks(store);
  const name = headName(evidence, head);
  const label = wantedLabels(evidence, head, store.selection.value)[0] ?? toldLabels(evidence, head)[0];
  const values = axes.map(
    (axis) => `${axis.replace(/^class /, "")} ${measureNumber(evidence, axis, measured(evidence, axis)[head])}`,
  );
  const said = [values.join(", "), headWords(evidence, head) || "no label"].filter(Boolean).join("; ");
  const preview = () => {
    store.hoverHead.value = head;
  };
  return (
    <button
      class="dot"
      data-dot={name}
      data-dim={isDimmed(store, head) || undefined}
      data-plain={label === undefined || undefined}
      data-at={head}
      aria-pressed={isChosen(store, evidence, head)}
      aria-label={`Head ${name}: ${said}`}
      title={`${name}: ${said}`}
      tabIndex={tabbed ? 0 : -1}
      style={{ left: `${x}px`, top: `${y}px` }}
      onPointerEnter={preview}
      onFocus={preview}
      onBlur={() => {
        store.hoverHead.value = null;
      }}
      onClick={(event) => onChoose(event.shiftKey)}
      onDblClick={() => store.choose({ view: "head" })}
    >
      <Mark shape={label && marks[label.pattern]} />
    </button>
  );
}

function isChosen(store: Store, { stack }: Evidence, head: number): boolean {
  const { heads } = store.selection.value;
  const place = headPlace(stack, head);
  return heads !== null && place.layer === store.layerNumber.value && heads.includes(place.head);
}

const CHOSEN = 2;
/** Room of a chosen dot with its ring, in pixels. */
const RING = 15;

/** Names of chosen heads first, then of those that stand out, then of those with a label. */
function namesOf(store: Store, evidence: Evidence, dots: readonly Dot[], size: Size) {
  const selection = store.selection.value;
  const rank = ({ head }: Dot) => {
    if (isChosen(store, evidence, head)) return CHOSEN;
    return (
      (isFiltered(selection) ? wantedLabels(evidence, head, selection) : toldLabels(evidence, head))[0]?.score ?? -1
    );
  };
  const wanted = dots
    .map((dot) => ({ dot, rank: rank(dot), text: headName(evidence, dot.head) }))
    .map((each) => (each.rank === CHOSEN ? { ...each, room: RING } : each))
    .filter(({ rank }) => rank >= 0)
    .sort((a, b) => b.rank - a.rank);
  return placeNames(wanted, dots, size);
}

/** Moves the keyboard focus to the next dot in the direction of an arrow. */
function moveDot(event: KeyboardEvent & { currentTarget: HTMLElement }, dots: readonly Dot[]): void {
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>(".dot")];
  const at = buttons.indexOf(event.target as HTMLElement);
  const next = at < 0 ? null : nextDot(dots, dots[at], event.key);
  if (event.key.startsWith("Arrow") && at >= 0) event.preventDefault();
  if (!next) return;
  for (const button of buttons) button.tabIndex = -1;
  const button = buttons[dots.indexOf(next)];
  button.tabIndex = 0;
  button.focus();
}

function MapNote({ store, evidence: { said } }: { store: Store; evidence: Evidence }) {
  if (!said.map) return null;
  const { queries, stress, texts } = said.map;
  const all = store.stack.value.query.labels.length;
  const some = queries < all && !texts;
  const part = some ? `, from ${queries} of its ${counted(all, "query").replace("querys", "queries")}` : "";
  const where = texts ? `over ${counted(texts, "text")}` : "on the shown text";
  return (
    <p class="note" data-map-note>
      Heads that attend alike {where} lie close together{part}: Jensen-Shannon divergence, metric scaling (Clark et al.
      2019). Directions mean nothing. Stress {stress.toFixed(2)}
      {stress > 0.2 && ": a poor map, distances are only roughly kept"}.
    </p>
  );
}
