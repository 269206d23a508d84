import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { CHOICES } from "../contract/values";
import { fillTile } from "../draw/kinds";
import { weightRamp } from "../draw/ramps";
import type { LoadedKinds } from "../source/kinds";
import { headName } from "../state/evidence";
import { headHeat, heatWords, MEASURE_WORDS, mostOf } from "../state/heat";
import { headWords } from "../state/kinds";
import { openHead } from "../state/selection";
import type { Store } from "../state/store";
import { amount } from "../state/words";
import { ARROWS } from "./arrows";
import { Choice } from "./Choice";
import { density, putPixels } from "./canvas";
import { Scale } from "./Scale";

interface HeatGridProps {
  store: Store;
  kinds: LoadedKinds;
  /** Room for the map, its labels included, in CSS pixels. */
  width: number;
  /** Height that all rows may take. */
  height: number;
  onOpen?: (() => void) | undefined;
  onDrawn?: ((canvas: HTMLElement, side: number) => void) | undefined;
}

/** Width of the numbers of layers; room of a label from line to line and from column to column. */
const [LABELS, ROW, COLUMN] = [26, 14, 22];

/** All heads of a large model: one colour each, by one measure. */
export function HeatGrid({ store, kinds, width, height, onOpen, onDrawn }: HeatGridProps) {
  const root = useRef<HTMLDivElement>(null);
  const pointed = useSignal<number | null>(null);
  const { heads, head_numbers: numbers } = store.stack.value;
  const rows = allRows(store);
  // A frame that is out of sight has next to no width.
  const column = Math.max(0, width - LABELS) / heads;
  // Rows may be higher than columns are wide, but all of them should be seen at once.
  const row = Math.max(2, Math.min(Math.max(column, 8), height / rows.length));
  const size = { width: column * heads, height: row * rows.length };
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    if (!canvas) return;
    paint(canvas, store, kinds, size);
    onDrawn?.(canvas, 0);
  });
  const at = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = rows[Math.floor((event.clientY - box.top) / row)];
    const head = Math.floor((event.clientX - box.left) / column);
    return place && place.row >= 0 && head >= 0 && head < heads ? place.row * heads + head : null;
  };
  const choose = (head: number | null, add: boolean) => {
    if (head === null) return;
    const { layer } = store.stack.value.layers[Math.floor(head / heads)];
    store.select((now) => openHead(now, layer, numbers[head % heads], store.stack.value, add));
  };
  const point = (head: number | null) => {
    pointed.value = head;
    store.hoverHead.value = head;
  };
  const shown = pointed.value ?? chosenAt(store);
  return (
    <div class="heat-grid" ref={root}>
      <MeasureChoice store={store} />
      <div class="heat-map" style={{ marginLeft: `${LABELS}px`, width: `${size.width}px`, height: `${size.height}px` }}>
        <div aria-hidden="true">
          <canvas data-canvas="heat" />
        </div>
        <div
          class="heat-cells"
          role="group"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows go from head to head here
          tabIndex={0}
          data-heat
          aria-label="All heads: rows are layers, columns are heads; arrows choose one"
          onPointerMove={(event) => point(at(event))}
          onPointerLeave={() => point(null)}
          onClick={(event) => {
            choose(at(event as unknown as PointerEvent & { currentTarget: HTMLElement }), event.shiftKey);
            if (!event.shiftKey) onOpen?.();
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") onOpen?.();
            else walk(event, store, choose);
          }}
        />
        <Rulers store={store} rows={rows} row={row} column={column} />
        <Frames store={store} rows={rows} row={row} column={column} />
      </div>
      <p class="view-note" aria-live="polite" data-heat-said>
        {shown === null ? "Point at a head, click to choose it." : saidOf(store, kinds, shown)}
      </p>
      <HeatScale store={store} kinds={kinds} />
    </div>
  );
}

/** Which measure colours the heads. */
export function MeasureChoice({ store }: { store: Store }) {
  const { said } = store.kinds.value ?? {};
  const known = CHOICES.measure.filter((name) => name === "kind" || said?.columns.includes(name));
  return (
    <Choice
      label="colour"
      name="data-measure"
      options={known}
      words={MEASURE_WORDS}
      chosen={store.selection.value.measure}
      onChoose={(measure) => store.choose({ measure })}
    />
  );
}

/** The scale of the measure; kinds have their legend in the sentence of the overview. */
export function HeatScale({ store, kinds }: { store: Store; kinds: LoadedKinds }) {
  const { measure } = store.selection.value;
  if (measure === "kind") return null;
  const ticks = [0, 0.5, 1].map((part) => [part, amount(part * mostOf(kinds, measure))] as const);
  return <Scale ramp={weightRamp(store.dark.value)} ticks={ticks} label={MEASURE_WORDS[measure]} />;
}

/** A line of the map: a layer by its place in the stack, or -1 where that has no attention, and why. */
export interface MapRow {
  readonly layer: number;
  readonly row: number;
  readonly why?: string;
}

/** All layers of the model in order, those without attention among them. */
export function allRows({ stack }: Pick<Store, "stack">): MapRow[] {
  const { layers, absent = [] } = stack.value;
  const there = layers.map(({ layer }, row): MapRow => ({ layer, row }));
  return [...there, ...absent.map(({ layer, why }) => ({ layer, row: -1, why }))].sort((a, b) => a.layer - b.layer);
}

interface PlacesProps {
  store: Store;
  rows: readonly MapRow[];
  row: number;
  column: number;
}

function Rulers({ store, rows, row, column }: PlacesProps) {
  const [everyRow, everyColumn] = [Math.ceil(ROW / row), Math.ceil(COLUMN / column)];
  return (
    <div aria-hidden="true">
      {rows.map(({ layer, why }, at) => [
        at % everyRow === 0 && (
          <span class="heat-row" style={{ top: `${(at + 0.5) * row}px` }}>
            {layer}
          </span>
        ),
        why !== undefined && (
          <span
            class="no-attention"
            title={`Layer ${layer}: ${why}`}
            style={{ top: `${at * row}px`, height: `${row}px` }}
          />
        ),
      ])}
      {store.stack.value.head_numbers.map(
        (number, at) =>
          at % everyColumn === 0 && (
            <span class="heat-column" style={{ left: `${(at + 0.5) * column}px` }}>
              {number}
            </span>
          ),
      )}
    </div>
  );
}

/** Around the chosen heads, or around their layer where there are many. */
function Frames({ store, rows, row, column }: PlacesProps) {
  const at = rows.findIndex(({ layer, row: place }) => place >= 0 && layer === store.layerNumber.value);
  const { heads } = store.stack.value;
  const on = store.heads.value;
  const frames = on.length > 8 ? [[0, heads]] : on.map((head) => [head, 1]);
  return (
    <>
      {frames.map(([head, count]) => (
        <span
          key={head}
          class="heat-frame"
          aria-hidden="true"
          style={{
            left: `${head * column}px`,
            top: `${at * row}px`,
            width: `${Math.max(5, count * column)}px`,
            height: `${Math.max(5, row)}px`,
          }}
        />
      ))}
    </>
  );
}

function paint(
  canvas: HTMLCanvasElement,
  store: Store,
  kinds: LoadedKinds,
  of: { width: number; height: number },
): void {
  const scale = density();
  const size = { width: Math.round(of.width * scale), height: Math.round(of.height * scale) };
  const picture = { pixels: new Uint32Array(size.width * size.height), width: size.width };
  const { heads } = store.stack.value;
  const rows = allRows(store);
  const color = headHeat(kinds, store.selection.value.measure, store.dark.value);
  const x = (head: number) => Math.round((head * size.width) / heads);
  const y = (line: number) => Math.round((line * size.height) / rows.length);
  rows.forEach(({ row }, line) => {
    if (row < 0) return;
    for (let head = 0; head < heads; head++) {
      const place = { left: x(head), top: y(line), size: x(head + 1) - x(head), high: y(line + 1) - y(line) };
      fillTile(picture, place, color(row * heads + head));
    }
  });
  putPixels(canvas, new Uint8ClampedArray(picture.pixels.buffer), size);
}

function chosenAt({ stack, heads, layerNumber }: Store): number | null {
  const row = stack.value.layers.findIndex(({ layer }) => layer === layerNumber.value);
  return heads.value.length === 1 ? row * stack.value.heads + heads.value[0] : null;
}

function saidOf(store: Store, kinds: LoadedKinds, head: number): string {
  const { measure } = store.selection.value;
  const number = measure === "kind" ? "" : ` · ${heatWords(kinds, measure, head)}`;
  return `Head ${headName({ stack: store.stack.value }, head)} ${headWords(kinds, head).does}${number}`;
}

function walk(event: KeyboardEvent, store: Store, choose: (head: number | null, add: boolean) => void): void {
  const step = ARROWS[event.key];
  if (!step) return;
  event.preventDefault();
  const { layers, heads } = store.stack.value;
  const row = layers.findIndex(({ layer }) => layer === store.layerNumber.value);
  const inside = (value: number, count: number) => Math.min(count - 1, Math.max(0, value));
  // From the head that was asked for, which may still be loading.
  const head = store.wantedHeads.value[0] ?? 0;
  choose(inside(row + step[0], layers.length) * heads + inside(head + step[1], heads), false);
}
