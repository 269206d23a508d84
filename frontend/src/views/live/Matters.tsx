import { useSignal } from "@preact/signals";
import type { LivePlace, MattersValues } from "../../contract/live";
import { Check } from "../../parts/Check";
import { chance } from "../../state/chance";
import { readable } from "../../state/label";
import type { MattersTo } from "../../state/ranking";
import type { Store } from "../../state/store";
import { percent } from "../../state/words";
import type { LiveParts } from "./LiveBar";
import { effectText } from "./MattersOnGrid";
import { placesShown } from "./OutputPanel";
import { RankedHeads } from "./RankedHeads";

const STATES: MattersTo = { target: {}, words: "the states of the tokens" };

/** Which heads a guess rests on: one button, with progress; the answer colours the heads, and stands here in order. */
export function Matters({ live, store }: LiveParts) {
  const { progress, shown, onGrid, problem, start, stop } = live.matters;
  const { output } = live.answer.value.opening;
  const choices = output ? targetsOf(placesShown(output, store)) : [];
  const chosen = useSignal("");
  const target = choices.find(({ words }) => words === chosen.value) ?? choices[0] ?? STATES;
  const now = shown.value;
  const values = now?.values.find(({ stack }) => stack === store.pieceStack.value.name);
  return (
    <>
      <div class="live-keep">
        {choices.length === 0 ? (
          <span>What matters to {STATES.words}?</span>
        ) : (
          <label class="choice">
            <span>What matters to</span>
            <select
              data-matters-to
              value={target.words}
              onChange={(event) => {
                chosen.value = event.currentTarget.value;
              }}
            >
              {choices.map(({ words }) => (
                <option key={words}>{words}</option>
              ))}
            </select>
          </label>
        )}
        <button
          class="live-go"
          data-matters
          title="Each head is silenced in turn; before that, what one pass forward and back tells (Michel et al. 2019)"
          disabled={progress.value !== null || live.busy.value}
          onClick={() => {
            onGrid.value = true;
            void start(target);
          }}
        >
          Which heads matter?
        </button>
        {progress.value !== null && (
          <>
            <progress value={progress.value} aria-label="How far it got" />
            <small>{percent(progress.value)}</small>
            <button class="quiet" data-matters-stop onClick={stop}>
              cancel
            </button>
          </>
        )}
        {now && (
          <Check
            name="data-matters-on-grid"
            label="colour the heads"
            title="Colour every head, wherever it stands, by what it matters"
            checked={onGrid.value}
            onChange={(checked) => {
              onGrid.value = checked;
            }}
          />
        )}
        <small role="alert">{problem.value}</small>
      </div>
      {values && <Ranked values={values} store={store} method={now?.method ?? ""} />}
    </>
  );
}

/** The guesses at the places that are shown. */
function targetsOf(places: readonly LivePlace[]): readonly MattersTo[] {
  return places.flatMap(({ at, token, before, after }) =>
    (after ?? before).map(({ id, label, probability }) => {
      const where = at < 0 ? "" : ` at “${readable(token, 24).text}”`;
      return {
        target: at < 0 ? { id } : { at, id },
        words: `“${readable(label, 24).text}” (${chance(probability)})${where}`,
      };
    }),
  );
}

/** All heads, those that matter most first. */
function Ranked({ values: of, store, method }: { values: MattersValues; store: Store; method: string }) {
  const { values, label } = of;
  const order = [...values].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
  const most = Math.max(Math.abs(order[0]?.[2] ?? 0), 1e-12);
  return (
    <>
      <p class="live-note">
        {method === "gradient" ? "By gradient, a preview without sign: " : ""}
        {label}.
      </p>
      <div data-matters-ranked={method}>
        <RankedHeads
          store={store}
          name="matters"
          label={`Heads by ${label}`}
          heads={order.map(([layer, head, value]) => ({
            layer,
            head,
            part: Math.abs(value) / most,
            text: effectText(of, value),
            isBelow: value < 0,
          }))}
        />
      </div>
    </>
  );
}
