import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { KIND_NAMES } from "../../../contract/values";
import type { WhyPicture } from "../../../types/why";
import { type KindName, kindColor } from "../../draw/kinds";
import { useWidth } from "../../parts/canvas";
import { walkTiles } from "../../parts/controls";
import { shareText } from "../../state/partNumbers";
import { quoted, readable, shortWeight } from "../../state/words";
import { keepsText, leadsTo, linesOf, placedWhy, readWhy, signedShare, type WhyData, type WhyLine } from "./place";

/** How much less a line shows that is against the answer, and one that a chosen line has nothing to do with. */
const [PALE, DIM] = [0.4, 0.1];
/** Shares of words that are printed from. */
const SAID = 0.005;
const AGAINST = "light-dark(#a8480a, #ff9a4d)";
const SMALL = { "font-size": 11, fill: "var(--muted)" };

type WhyProps = {
  picture: WhyPicture;
  dark: boolean;
  children?: ComponentChildren;
  /** The line that stays chosen. */
  pinned: Signal<WhyLine | null>;
};

/** The way back from a word through layers and heads to the words it came from. */
export function WhyView({ picture: given, dark, children, pinned }: WhyProps) {
  const picture = useMemo(() => readWhy(given), [given]);
  const [stop, setStop] = useState(picture.chosen);
  const [pointed, setPointed] = useState<WhyLine | null>(null);
  const isRefused = picture.chosen < 0;
  const shown = pinned.value ?? pointed;
  const lines = useMemo(() => linesOf(picture, stop), [picture, stop]);
  const [ours, drawn] = isRefused ? ["", ""] : keepsText(picture, stop);
  return (
    <div class="answer" data-why-view>
      {children}
      <p class="answer-says">
        {picture.says[0]} <small class="muted">{isRefused ? picture.says[1] : EXPLAINED}</small>
      </p>
      {!isRefused && (
        <section class="card slim relative" aria-label="The way back from the answer">
          <Legend lines={lines} dark={dark} />
          <Drawing {...{ picture, stop, dark, shown, pinned }} onPoint={setPointed} />
          {shown && <Card line={shown} />}
        </section>
      )}
      <div class="view-bar row wrap">
        {!isRefused && (
          <label class="choice wrap flex" style={{ flex: "1 1 300px" }}>
            <input
              type="range"
              style={{ width: "min(270px, 100%)" }}
              data-why-stop
              min={0}
              max={picture.graphs.length - 1}
              value={stop}
              aria-label="How many lines are drawn"
              aria-valuetext={ours}
              onInput={(event) => {
                setStop(Number(event.currentTarget.value));
                pinned.value = null;
              }}
            />
            <p aria-live="polite" data-why-keeps>
              <b>{ours}</b> <span class="muted">{drawn}</span>
            </p>
          </label>
        )}
        {picture.graphs.length > 1 && <Curve picture={picture} stop={stop} />}
      </div>
      <details class="answer-tables" open={isRefused}>
        <summary>numbers, and how they were measured</summary>
        <div dangerouslySetInnerHTML={{ __html: picture.tables }} />
      </details>
    </div>
  );
}

const EXPLAINED =
  "A line is one head that takes something from one word to another. Width: what it carries of that lead. Number: what the lead measurably changes by when that line alone is cut.";

function Legend({ lines, dark }: { lines: readonly WhyLine[]; dark: boolean }) {
  const kinds = Object.entries(KIND_NAMES).filter(([kind]) => lines.some((line) => line.kind === kind));
  const mark = (text: string, look: object) => (
    <span key={text} class="choice row">
      <svg width="22" height="8" aria-hidden="true">
        <path d="M2 4H20" stroke-width="4" stroke-linecap="round" stroke="currentColor" {...look} />
      </svg>
      {text}
    </span>
  );
  return (
    <p class="fine view-bar row wrap">
      {kinds.map(([kind, name]) => mark(name, { stroke: kindColor(kind as KindName, dark) }))}
      {lines.some((line) => line.isByLooking) &&
        mark("dotted: acts through where later heads look", { "stroke-dasharray": "1 7" })}
      {lines.some((line) => line.carried < 0) && mark("pale: against the answer", { opacity: PALE })}
    </p>
  );
}

type DrawingProps = {
  picture: WhyData;
  stop: number;
  dark: boolean;
  shown: WhyLine | null;
  pinned: WhyProps["pinned"];
  onPoint: (line: WhyLine | null) => void;
};

function Drawing({ picture, stop, dark, shown, pinned, onPoint }: DrawingProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root).value;
  const placed = useMemo(() => placedWhy(picture, stop, width), [picture, stop, width]);
  const { xs, ys, lines, pills, height } = placed;
  const all = lines.map(({ line }) => line);
  const isDim = (line: WhyLine) => shown !== null && !leadsTo(line, shown, all) && !leadsTo(shown, line, all);
  const toggle = (line: WhyLine) => (pinned.value = pinned.value === line ? null : line);
  const weakest = [...lines].sort((one, other) => Math.abs(one.line.carried) - Math.abs(other.line.carried));
  const top = ys.length - 1;
  return (
    <div
      ref={root}
      class="why-drawing"
      role="group"
      aria-label="Lines, the strongest first"
      onKeyDown={(event) => walkTiles(event, 1, "[data-line]")}
    >
      {width > 0 && (
        <svg
          {...{ width, height }}
          class="block"
          role="presentation"
          overflow="visible"
          fill="currentColor"
          font-size="14"
        >
          <Ground {...{ picture, placed }} />
          {weakest.map(({ line, width: wide, path }) => (
            <path
              key={line.id}
              d={path}
              fill="none"
              stroke-linecap="round"
              stroke={kindColor(line.kind, dark)}
              stroke-width={wide.toFixed(1)}
              stroke-dasharray={line.isByLooking ? `.1 ${(1.9 * wide + 1.6).toFixed(1)}` : undefined}
              opacity={(line.carried < 0 ? PALE : 0.92) * (isDim(line) ? DIM / PALE : 1)}
            />
          ))}
          <circle cx={xs.get(picture.at)} cy={ys[top]} r="9" fill="var(--text)" />
          <text
            font-size="20"
            font-weight="700"
            text-anchor="end"
            x={Math.min(width - 2, (xs.get(picture.at) ?? 0) + 46)}
            y={ys[top] - 20}
          >
            {readable(picture.answer, 24).text}{" "}
            <tspan font-weight="400" fill="var(--muted)">
              {shareText(picture.probability)}
            </tspan>
          </text>
          {lines.map(({ line, path }, at) => (
            <path
              key={line.id}
              class="why-hit"
              d={path}
              fill="none"
              stroke="transparent"
              stroke-width="12"
              cursor="pointer"
              role="button"
              data-line={line.name}
              aria-pressed={pinned.value === line}
              aria-label={told(line)}
              tabIndex={(pinned.value ? pinned.value === line : at === 0) ? 0 : -1}
              onClick={() => toggle(line)}
              onKeyDown={({ key }) => {
                if (key === "Enter") toggle(line);
                if (key === "Escape") pinned.value = null;
              }}
              onPointerEnter={() => onPoint(line)}
              onPointerLeave={() => onPoint(null)}
              onFocus={() => onPoint(line)}
              onBlur={() => onPoint(null)}
            />
          ))}
          {pills.map((pill) => (
            <Pill key={pill.line.id} pill={pill} isDim={isDim(pill.line)} />
          ))}
        </svg>
      )}
    </div>
  );
}

type PillProps = { pill: ReturnType<typeof placedWhy>["pills"][number]; isDim: boolean };

/** The number on a line. */
function Pill({ pill: { line, x, y, wide, text }, isDim }: PillProps) {
  return (
    <g pointer-events="none" opacity={isDim ? 0.25 : 1}>
      <rect
        {...{ x: x - wide / 2, y: y - 10, width: wide, height: 20, rx: 10 }}
        fill="var(--card)"
        stroke="var(--edge)"
      />
      <text {...SMALL} text-anchor="middle" x={x} y={y + 4}>
        {line.name}{" "}
        <tspan font-weight="650" fill={line.measured > 0 ? AGAINST : "var(--text)"}>
          {text}
        </tspan>
      </text>
    </g>
  );
}

type ColumnProps = { picture: WhyData; placed: ReturnType<typeof placedWhy>; column: number };

/** Rows, words, and where columns are left out. */
function Ground({ picture, placed }: Omit<ColumnProps, "column">) {
  const { xs, ys, breaks, isSmall, isTurned } = placed;
  return (
    <>
      {picture.rows.map((name, row) => (
        <text key={name} {...SMALL} y={ys[row] + 4}>
          {isSmall ? name.replace(/\D+ |words/, "") : name}
        </text>
      ))}
      {Math.abs(picture.biases) >= SAID && !isSmall && (
        <text {...SMALL} y={ys[0] + (isTurned ? 18 : 48)}>
          biases {signedShare(picture.biases)}
        </text>
      )}
      {[...xs.keys()].map((column) => (
        <Column key={column} {...{ picture, placed, column }} />
      ))}
      {breaks.map((x) => (
        <text key={x} {...SMALL} text-anchor="middle" x={x} y={ys[0] + 4}>
          ⋯
        </text>
      ))}
    </>
  );
}

/** A word with what it carries, and the rows that lines touch. */
function Column({ picture, placed, column }: ColumnProps) {
  const { xs, ys, tops, isTurned, letters } = placed;
  const { label, tokens, carried, bottom } = picture.columns[column];
  const [x, top, from] = [xs.get(column) ?? 0, tops.get(column) ?? -1, ys[bottom]];
  const share = Math.abs(carried) < SAID ? "" : signedShare(carried);
  const high = Math.min(13, Math.max(1, 40 * Math.abs(carried)));
  const text = readable(label, letters).text;
  const fill = carried < 0 ? AGAINST : "var(--muted)";
  const bar = { x: x - 20, width: 40, y: from + 33, height: high, rx: 1.5 };
  if (isTurned) Object.assign(bar, { x: x - 4, width: 8, y: from + 7, height: high });
  return (
    <g fill={top < 0 ? "var(--muted)" : "currentColor"}>
      <title>{`${readable(label).text}${tokens > 1 ? `, ${tokens} tokens` : ""}: carries ${share || "nothing"}`}</title>
      {top > bottom && (
        <path d={`M${x} ${from}V${ys[top]}`} stroke="var(--edge)" stroke-width={column === picture.at ? 4 : 2} />
      )}
      <g fill="var(--faint)">
        {ys.slice(bottom).map((y, row) => (
          <circle key={row} cx={x} cy={y} r={row + bottom <= top ? 3.4 : 1.5} />
        ))}
        {tokens > 1 && <rect x={x - 9} y={from - 3.5} width="18" height="7" rx="3.5" />}
      </g>
      {share && <rect {...bar} fill={fill} />}
      {isTurned ? (
        <text text-anchor="end" font-size="13" transform={`translate(${x + 4} ${from + 28}) rotate(-58)`}>
          {text} <tspan {...SMALL}>{share}</tspan>
        </text>
      ) : (
        <>
          <text text-anchor="middle" x={x} y={from + 24}>
            {text}
          </text>
          <text {...SMALL} text-anchor="middle" x={x} y={from + 46 + high}>
            {share}
          </text>
        </>
      )}
    </g>
  );
}

function told(line: WhyLine): string {
  const [from, to] = line.words.map((word) => quoted(readable(word, 24).text));
  const measured = signedShare(line.measured) || "less than 0.1 %";
  return `Head ${line.name}, from ${from} to ${to}: carries ${signedShare(line.carried) || "less than 0.1 %"}, lead when cut ${measured}`;
}

/** The numbers of a line. */
function Card({ line }: { line: WhyLine }) {
  const [from, to] = line.words.map((word) => quoted(readable(word, 24).text));
  const rows = [
    ["carries", line.carried],
    ["lead when it is cut, measured", line.measured],
    ["of which by where later heads look", line.later],
    ["first-order estimate of the cut", line.estimate],
  ] as const;
  return (
    <div class="card why-card" role="status" data-why-card>
      <h2>
        head {line.name} <small class="muted">{KIND_NAMES[line.kind]}</small>
      </h2>
      <p>
        {from} → {to} <small class="muted">weight {shortWeight(line.weight)}</small>
      </p>
      <dl>
        {rows.map(([name, part]) => (
          <div key={name} class="row apart">
            <dt>{name}</dt>
            <dd>{part === line.measured ? <b>{signedShare(part) || "0 %"}</b> : signedShare(part) || "0 %"}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** Pixels of the curve, and the highest share in it. */
const [WIDE, HIGH, MOST] = [260, 74, 1.25];

/** What graphs keep by their number of lines, and what as many lines drawn by weight do. */
function Curve({ picture: { graphs }, stop }: { picture: WhyData; stop: number }) {
  const most = Math.log(graphs[graphs.length - 1].lines + 1);
  const x = (at: number) => (42 + ((WIDE - 50) * Math.log(graphs[at].lines + 1)) / most).toFixed(1);
  const y = (keeps: number) => (6 + (HIGH - 22) * (1 - Math.min(MOST, Math.max(0, keeps)) / MOST)).toFixed(1);
  const through = (of: (graph: WhyData["graphs"][number]) => number) =>
    graphs.map((graph, at) => `${x(at)} ${y(of(graph))}`);
  const band = [...through(({ drawn }) => drawn[0]), ...through(({ drawn }) => drawn[2]).reverse()];
  const last = graphs[graphs.length - 1];
  return (
    <svg
      width={WIDE}
      height={HIGH}
      role="img"
      aria-label={`What is kept by the number of lines: the strongest ${last.lines} keep ${shareText(last.keeps)}; lines drawn by weight are the grey band, quantiles .05 to .95`}
    >
      <path d={`M42 ${y(1)}H${WIDE - 8}M42 ${y(0)}H${WIDE - 8}`} stroke="var(--edge)" />
      <path d={`M${band.join("L")}Z`} fill="var(--faint)" opacity=".35" />
      <path d={`M${through(({ drawn }) => drawn[1]).join("L")}`} stroke="var(--faint)" fill="none" />
      <path d={`M${through(({ keeps }) => keeps).join("L")}`} stroke="var(--accent)" stroke-width="2" fill="none" />
      {stop >= 0 && <circle cx={x(stop)} cy={y(graphs[stop].keeps)} r="4" fill="var(--accent)" />}
      {[1, 0].map((share) => (
        <text key={share} {...SMALL} text-anchor="end" x="37" y={Number(y(share)) + 3.5}>
          {shareText(share).replace(".0", "")}
        </text>
      ))}
      <text {...SMALL} x="42" y={HIGH - 2}>
        {graphs[0].lines} to {last.lines} lines; grey: drawn by weight
      </text>
    </svg>
  );
}
