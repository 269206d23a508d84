import { useState } from "preact/hooks";
import { Mark } from "../../../parts/Mark";
import type { ComparedScore } from "../../../source/atlasComparison";
import { shortShare } from "../../../state/atlas";
import { isClear, pairAddress, pairName, signed } from "../../../state/atlasComparison";
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
  const names = [...new Set(index.differences.map(([, name]) => name))];
  return (
    <section class="card atlas-card" aria-label="What changed most">
      <div class="twin-bar flex wrap top">
        <h2>{pair === undefined ? "What changed most" : "Scores of both heads"}</h2>
        {pair === undefined && (
          <label class="choice row muted">
            Pattern{" "}
            <select
              value={pattern}
              onChange={(event) => {
                setPattern(event.currentTarget.value);
                setShown(SHOWN);
              }}
            >
              <option value="">all</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
      </div>
      <table class="twin-changes">
        <thead>
          <tr>
            {pair === undefined && <th scope="col">heads</th>}
            <th scope="col">pattern</th>
            <th scope="col" class="twin-wide">
              from 0 to 1
            </th>
            <th scope="col">
              <bdi>{index.names[0]}</bdi>
            </th>
            <th scope="col">
              <bdi>{index.names[1]}</bdi>
            </th>
            <th scope="col">change</th>
            <th scope="col" class="twin-wide">
              interval
            </th>
          </tr>
        </thead>
        <tbody>
          {mine.slice(0, shown).map((score) => (
            <Row key={`${score[0]} ${score[1]}`} view={view} score={score} named={pair === undefined} />
          ))}
        </tbody>
      </table>
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
    </section>
  );
}

function Row({ view, score, named }: { view: ComparisonView; score: ComparedScore; named: boolean }) {
  const [number, pattern, before, after, low, high] = score;
  const { index, a } = view;
  const change = signed(after - before);
  return (
    <tr data-clear={isClear(score) || undefined}>
      {named && (
        <th scope="row">
          <a href={pairAddress(index, number)}>{pairName(index, index.pairs[number])}</a>
        </th>
      )}
      <th scope={named ? undefined : "row"} class="twin-pattern">
        <Mark shape={a.marks.get(pattern)} /> <bdi>{pattern}</bdi>
      </th>
      <td class="twin-wide">
        <Dumbbell before={before} after={after} />
      </td>
      <td>{shortShare(before)}</td>
      <td>{shortShare(after)}</td>
      <td>
        <b>{change}</b>
      </td>
      <td class="twin-wide">{low !== null && high !== null && `[${signed(low)}, ${signed(high)}]`}</td>
    </tr>
  );
}

/** Two scores on a line from 0 to 1: a ring for A, a dot for B. */
function Dumbbell({ before, after }: { before: number; after: number }) {
  const x = (value: number) => 6 + 108 * Math.min(1, Math.max(0, value));
  return (
    <svg class="twin-dumbbell" viewBox="0 0 120 14" aria-hidden="true">
      <path class="twin-axis" d="M6 7H114" />
      <path class="twin-way" d={`M${x(before)} 7H${x(after)}`} />
      <circle class="twin-before" cx={x(before)} cy={7} r={3.4} />
      <circle class="twin-after" cx={x(after)} cy={7} r={3.9} />
    </svg>
  );
}
