import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { HEAD_LOOKS, KIND_NAMES } from "../../../contract/values";
import { parseHex, type RGB, rampCss, textOn } from "../../draw/color";
import { type KindName, kindColor, kindRamp } from "../../draw/kinds";
import { paintCells, useWidth } from "../../parts/canvas";
import { walkTiles } from "../../parts/controls";
import { KindIcon } from "../../parts/legend";
import { type AnswerData, type PartNumbers, partNumbers, sharesOf, shareText } from "../../state/partNumbers";
import { MARKER, type Shown } from "./AnswerView";

const [OFTEN, TIMES] = HEAD_LOOKS;
/** Rows of a tile: of a longer answer words one after the other share a row. */
const ROWS = 12;
const AND = new Intl.ListFormat("en-GB");
/** Tiles beside each other where heads are ranked. */
const RANKED = 4;

/** All heads as tiles, words x parts, in the colour of what each head does. */
export function AnswerHeads({ shown, onHead }: { shown: Shown; onHead: (head: number) => void }) {
  const { data, head, dark } = shown;
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root).value;
  const columns = data.columns || RANKED;
  const target = AND.format(data.targets.map((part) => data.parts[part].name));
  const numbers = useMemo(
    () => data.heads.map((_, at) => onTargets(data, partNumbers(data, data.every, at + 1))),
    [data],
  );
  const on = (at: number) => (target ? ` ${shareText(numbers[at].looked)} on ${target}` : "");
  const tile = Math.max(8, Math.floor((width - 18) / columns) - 4);
  const isFramed = (at: number) => numbers[at].looked >= OFTEN && numbers[at].looked >= TIMES * numbers[at].due;
  if (data.heads.length === 0) return null;
  const kinds = Object.entries(KIND_NAMES).filter(([kind]) => data.kinds.includes(kind));
  return (
    <section class="card" aria-label="Heads">
      <h2>{data.needed[0].length > 0 ? "Which heads look at what it needed" : "Which heads look where"}</h2>
      <p class="fine">
        A tile is a head: rows the words, columns the parts.{" "}
        {target && `Framed: ${100 * OFTEN} % or more on ${target}${data.targets.length > 1 ? " together" : ""}.`}{" "}
        {!data.columns && "Those that look at it most come first."}
      </p>
      <div
        class="answer-heads stack middle muted"
        ref={root}
        role="group"
        aria-label="Heads"
        data-ranked={!data.columns || undefined}
        style={{ "--columns": columns }}
        onKeyDown={(event) => walkTiles(event, columns, "[data-head]")}
      >
        {data.columns > 0 && Array.from({ length: columns + 1 }, (_, at) => <span key={at}>{at > 0 && at - 1}</span>)}
        {data.heads.map((name, at) => (
          <>
            {data.columns > 0 && at % columns === 0 && <span key={`layer ${name}`}>{name.split("-")[0]}</span>}
            <button
              key={name}
              class="answer-tile block slim"
              data-head={name}
              data-framed={isFramed(at) || undefined}
              aria-pressed={head === at + 1}
              tabIndex={(head || 1) === at + 1 ? 0 : -1}
              aria-label={`Head ${name}, ${KIND_NAMES[data.kinds[at] as KindName]}${on(at)}`}
              title={`${name}${on(at)}`}
              onClick={() => onHead(head === at + 1 ? 0 : at + 1)}
            >
              <Cells shown={shown} head={at + 1} kind={data.kinds[at] as KindName} width={tile} />
              {!data.columns && <small>{target ? `${name} ${shareText(numbers[at].looked)}` : name}</small>}
            </button>
          </>
        ))}
      </div>
      <p class="fine row wrap answer-kinds">
        {kinds.map(([kind, name]) => (
          <span key={kind} class="row" style={{ "--kind": kindColor(kind as KindName, dark) }}>
            <KindIcon kind={kind as KindName} /> {name}
          </span>
        ))}
      </p>
    </section>
  );
}

/** What a head gives to the parts that heads are ranked by, together, and what their length gives. */
function onTargets(data: AnswerData, numbers: readonly PartNumbers[]) {
  const [looked, due] = (["looked", "due"] as const).map((name) =>
    data.targets.reduce((sum, part) => sum + numbers[part][name], 0),
  );
  return { looked, due };
}

type CellsProps = { shown: Shown; head: number; kind: KindName; width: number };

function Cells({ shown: { data, dark }, head, kind, width }: CellsProps) {
  const parts = data.outer;
  const canvas = useRef<HTMLCanvasElement>(null);
  const count = Math.min(ROWS, data.words.length);
  const height = Math.max(18, Math.min(48, 9 * count));
  useLayoutEffect(() => {
    const colors = Array.from({ length: 256 }, (_, byte) => rampCss(kindRamp(kind, dark), byte));
    const rows = Array.from({ length: count }, (_, row) => {
      const [from, to] = [row, row + 1].map((at) => Math.floor((at * data.words.length) / count));
      return sharesOf(data, data.every.slice(from, to), head);
    });
    // Paper at its end has no edge: the least is as visible as what is void.
    const color = (row: number, part: number) =>
      colors[Math.round(18 + 237 * Math.sqrt(Math.min(1, rows[row][parts[part]])))];
    if (canvas.current) paintCells(canvas.current, { rows: count, columns: parts.length, width, height, color });
  }, [data, dark, head, kind, width, height, count, parts]);
  return <canvas class="block" ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} />;
}

/** Height of a row of part x part with its name, and most rows that have one. */
const [ROW, NAMED] = [23, 40];

/** How many times an even share each part looks at each part before it. */
export function Between({ shown: { data, dark } }: { shown: Shown }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [read, setRead] = useState("");
  const width = useWidth(box).value;
  const parts = data.outer;
  const rows = useMemo(() => [...parts, data.parts.length], [data, parts]);
  const isNamed = rows.length <= NAMED;
  const height = isNamed ? rows.length * Math.max(11, Math.min(ROW, 420 / rows.length)) : width;
  const value = (row: number, column: number) => data.between[rows[row] * data.parts.length + parts[column]];
  const isThere = (row: number, column: number) =>
    column <= row && row < rows.length && !Number.isNaN(value(row, column));
  const name = (part: number) => data.parts[part]?.name ?? "answer";
  useLayoutEffect(() => {
    const top = Math.log(data.between.reduce((most, each) => (each > most ? each : most), 2));
    const [ink, paper] = [parseHex(MARKER[dark ? 1 : 0]), parseHex(dark ? "#1a1f27" : "#eef1f5")];
    const mixed = (times: number): RGB => {
      const part = times <= 1 ? 0.06 * times : 0.06 + (0.94 * Math.log(times)) / top;
      return paper.map((from, at) => Math.round(from + part * (ink[at] - from))) as unknown as RGB;
    };
    const color = (row: number, column: number) =>
      isThere(row, column) && `rgb(${mixed(value(row, column)).join(" ")})`;
    const number = (row: number, column: number) => {
      const times = value(row, column);
      return [times.toFixed(1), textOn(mixed(times))] as const;
    };
    const size = { rows: rows.length, columns: parts.length, width, height };
    if (canvas.current && width > 0) paintCells(canvas.current, { ...size, color, number });
  });
  if (data.between.length === 0 || parts.length < 2) return null;
  const point = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const row = Math.floor((event.offsetY / height) * rows.length);
    const column = Math.floor((event.offsetX / width) * parts.length);
    const both = `${name(rows[row])} looks at ${name(parts[column])}`;
    setRead(isThere(row, column) ? `${both}: ${value(row, column).toFixed(1)} times an even share` : "");
  };
  return (
    <section class="card" aria-label="Part x part">
      <h2>Part × part</h2>
      <p class="fine">{read || `rows look at columns: times an even share, mean over ${data.mean}`}</p>
      <div class="answer-between flex" style={{ "--rows": rows.length, "--height": `${height}px` }}>
        {isNamed && (
          <ol class="stack middle muted" aria-hidden="true">
            {rows.map((part) => (
              <li key={part} class="cut">
                {name(part)}
              </li>
            ))}
          </ol>
        )}
        <div ref={box} class="grow slim">
          <canvas
            class="block"
            ref={canvas}
            role="img"
            aria-label="How many times an even share each part looks at each part"
            style={{ width: "100%", height: `${height}px` }}
            onPointerMove={point}
            onPointerLeave={() => setRead("")}
          />
        </div>
      </div>
    </section>
  );
}
