import { useState } from "preact/hooks";
import { Choice } from "../../../parts/Choice";
import { Mark } from "../../../parts/Mark";
import type { ComparedScore } from "../../../source/atlasComparison";
import { shortShare } from "../../../state/atlas";
import { isClear, pairAddress, pairName, signed } from "../../../state/atlasComparison";
import { Card, Table } from "../parts";
import type { ComparisonView } from "./ComparisonPlace";

const SHOWN = 12;

interface ChangesProps {
  view: ComparisonView;
  /** Of this pair alone. */
  pair?: number;
}

/** The scores that differ most, with intervals. */
export function Changes({ view, pair }: ChangesProps) {
  const { index } = view;
  const [shown, setShown] = useState(SHOWN);
  const [pattern, setPattern] = useState("");
  const mine = index.differences.filter(([number, name]) => {
    return (pair === undefined || number === pair) && (pattern === "" || name === pattern);
  });
  const clear = mine.filter(isClear).length;
  const byChance = (1 - index.confidence) * mine.length;
  const alone = pair !== undefined;
  const shownScores = mine.slice(0, shown);
  return (
    <Card label="What changed most" title={alone ? "Scores of both heads" : "What changed most"}>
      {!alone && (
        <Choice
          label="Pattern"
          name="data-pattern"
          options={["", ...new Set(index.differences.map(([, name]) => name))]}
          words={{ "": "all" }}
          chosen={pattern}
          onChoose={(chosen) => {
            setPattern(chosen);
            setShown(SHOWN);
          }}
        />
      )}
      <Table
        class="twin-changes"
        head={[
          ...(alone ? [] : ["heads"]),
          "pattern",
          <span class="twin-wide">from 0 to 1</span>,
          <bdi>{index.names[0]}</bdi>,
          <bdi>{index.names[1]}</bdi>,
          "change",
          <span class="twin-wide">interval</span>,
        ]}
        rows={shownScores.map((score) => rowOf(view, score, alone))}
        marks={(row) => ({ "data-clear": isClear(shownScores[row]) || undefined })}
      />
      {mine.length > shown && (
        <button type="button" class="quiet muted" onClick={() => setShown(shown + 40)}>
          {Math.min(40, mine.length - shown)} more of {mine.length}
        </button>
      )}
      <p class="fine">
        {clear} of {mine.length} scores have an interval ({100 * index.confidence} %) without 0; about{" "}
        {byChance.toFixed(0)} would by chance, were nothing changed. Both scores are taken as independent
        {index.sameTexts
          ? ", so that intervals are rather too wide: the texts are the same."
          : "; the texts are not the same, so that differences are of models and of texts."}
      </p>
    </Card>
  );
}

function rowOf({ index, a }: ComparisonView, score: ComparedScore, alone: boolean) {
  const [number, pattern, before, after, low, high] = score;
  const name = (
    <span class="twin-pattern">
      <Mark shape={a.marks.get(pattern)} /> <bdi>{pattern}</bdi>
    </span>
  );
  const numbers = [
    <Dumbbell before={before} after={after} />,
    shortShare(before),
    shortShare(after),
    <b>{signed(after - before)}</b>,
    <span class="twin-wide">{low !== null && high !== null && `[${signed(low)}, ${signed(high)}]`}</span>,
  ];
  if (alone) return [name, ...numbers] as const;
  return [<a href={pairAddress(index, number)}>{pairName(index, index.pairs[number])}</a>, name, ...numbers] as const;
}

/** Two scores on a line from 0 to 1: a ring for A, a dot for B. */
function Dumbbell({ before, after }: { before: number; after: number }) {
  const x = (value: number) => 6 + 108 * Math.min(1, Math.max(0, value));
  return (
    <svg class="twin-dumbbell twin-wide" viewBox="0 0 120 14" aria-hidden="true">
      <path class="twin-axis" d="M6 7H114" />
      <path class="twin-way" d={`M${x(before)} 7H${x(after)}`} />
      <circle class="twin-before" cx={x(before)} cy={7} r={3.4} />
      <circle class="twin-after" cx={x(after)} cy={7} r={3.9} />
    </svg>
  );
}
