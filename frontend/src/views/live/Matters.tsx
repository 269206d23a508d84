import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { LivePlace, MattersValues } from "../../../types/live";
import type { PageStack } from "../../../types/page";
import { type Ramp, signedByte, signedRamp, wordColors } from "../../draw/color";
import { Check, Choice, Quiet, Segmented } from "../../parts/controls";
import { Scale } from "../../parts/legend";
import { SketchBoard } from "../../parts/SketchBoard";
import { fromBase64, messageOf } from "../../source/source";
import { distance } from "../../state/evidence";
import type { MattersTo } from "../../state/ranking";
import { boardOf, type Drawing, emptyBoard, likest, meanBoards, type Sketched } from "../../state/sketch";
import type { Store } from "../../state/store";
import type { Ranked } from "../../state/store/chosen";
import { chance, counted, percent, quoted, readable, shortWeight } from "../../state/words";
import type { LiveParts } from "./LiveBar";
import { placesShown } from "./OutputPanel";

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
      <div class="live-keep row wrap">
        {choices.length === 0 ? (
          <span>What matters to {STATES.words}?</span>
        ) : (
          <Choice
            label="What matters to"
            name="data-matters-to"
            options={choices.map(({ words }) => words)}
            chosen={target.words}
            onChoose={(words) => (chosen.value = words)}
          />
        )}
        <button
          class="live-go"
          data-matters
          title="Each head is silenced in turn; before that, what one pass forward and back tells (Michel et al. 2019)"
          disabled={progress.value !== null || live.busy.value}
          onClick={() => {
            onGrid.value = true;
            store.choose({ view: "overview" });
            void start(target);
          }}
        >
          Which heads matter?
        </button>
        {progress.value !== null && (
          <>
            <progress value={progress.value} aria-label="How far it got" />
            <small>{percent(progress.value)}</small>
            <Quiet data-matters-stop onClick={stop}>
              cancel
            </Quiet>
          </>
        )}
        {now && (
          <Check
            name="data-matters-on-grid"
            label="colour the heads"
            title="Colour every head, wherever it stands, by what it matters"
            checked={onGrid.value}
            onChange={(checked) => (onGrid.value = checked)}
          />
        )}
        <small role="alert">{problem.value}</small>
      </div>
      {values && (
        <p class="live-note muted" data-matters-ranked={now?.method}>
          {now?.method === "gradient" ? "By gradient, a preview without sign: " : ""}
          {values.label}. All heads stand in this order.
        </p>
      )}
    </>
  );
}

/** The guesses at the places that are shown. */
function targetsOf(places: readonly LivePlace[]): readonly MattersTo[] {
  return places.flatMap(({ at, token, before, after }) =>
    (after ?? before).map(({ id, label, probability }) => {
      const where = at < 0 ? "" : ` at ${quoted(readable(token, 24).text)}`;
      return {
        target: at < 0 ? { id } : { at, id },
        words: `${quoted(readable(label, 24).text)} (${chance(probability)})${where}`,
      };
    }),
  );
}

/** The half of a ramp of both signs that is above 0. */
function upper(ramp: Ramp): Ramp {
  return ramp.map((_, byte) => ramp[128 + (byte >> 1)]);
}

/** Heads in the order in which they are given, each with its value; null where there are none. */
function ranking(
  { name, layers, heads, head_numbers: numbers }: PageStack,
  label: string,
  order: readonly (readonly [layer: number, head: number, value: number])[],
  text: (value: number) => string,
): Ranked | null {
  const rowOf = (number: number) => layers.findIndex(({ layer }) => layer === number);
  const values = new Map(order.map(([layer, head, value]) => [rowOf(layer) * heads + numbers.indexOf(head), value]));
  const all = { stack: name, label, heads: [...values.keys()], text: (at: number) => text(values.get(at) ?? 0) };
  return order.length > 0 ? all : null;
}

/** What each head matters, as the colour of the head wherever it stands, with its scale. */
export function MattersOnGrid({ live, store }: LiveParts) {
  const { shown, onGrid, progress } = live.matters;
  const found = useComputed(() => {
    const { name } = store.pieceStack.value;
    return onGrid.value ? shown.value?.values.find(({ stack }) => stack === name) : undefined;
  });
  useSignalEffect(() => {
    const of = found.value;
    const order = [...(of?.values ?? [])].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
    const text = (value: number) => (of ? effectText(of, value) : "");
    store.ranked.value = ranking(store.pieceStack.peek(), "by what they matter", order, text);
  });
  const [now, values] = [shown.value, found.value];
  if (!now || !values) return null;
  const most = largest(values);
  const ramp = signedRamp(store.dark.value);
  const first = hasSigns(values) ? -most : 0;
  return (
    <div class="live-legend row wrap" data-on-grid={now.method}>
      <style>{rules(values, ramp)}</style>
      <strong>Heads by what they matter</strong>
      <span>
        to {now.words}
        {now.method === "gradient" && (progress.value === null ? ": by gradient only" : ": by gradient, exact to come")}
      </span>
      <Scale
        ramp={first < 0 ? ramp : upper(ramp)}
        ticks={[first, most].map((value, at) => [at, effectText(values, value)] as const)}
        label=""
      />
      <small>{values.label}</small>
      <Quiet data-off-grid onClick={() => (onGrid.value = false)}>
        show the maps again
      </Quiet>
    </div>
  );
}

/**
 * A colour and a number for each head, as a style: no view has to know of what only a model can tell.
 *
 * The number stands where a tile has room for it.
 */
function rules(of: MattersValues, ramp: Ramp): string {
  const most = largest(of);
  const colored = of.values.map(([layer, head, value]) => {
    const byte = signedByte(value, most);
    const { background, color } = wordColors(ramp, byte);
    const tile = `[data-tile="${layer}-${head}"]`;
    return `${tile}{background-color:${background};color:${color}}${tile}::after{content:"${effectText(of, value)}"/""}`;
  });
  return `${colored.join("")}${HIDDEN}`;
}

/** What stands on a tile, and the scale of all tiles, are of the maps that are covered. */
const HIDDEN = `[data-tile]>*{display:none}.tiles-bar .scale,.all-heads .scale{visibility:hidden}[data-tile]{container-type:inline-size}
[data-tile]::after{display:none;font-size:10px;letter-spacing:-0.02em}
@container (min-width:30px){[data-tile]::after{display:block}}`;

function largest({ values }: Pick<MattersValues, "values">): number {
  return values.reduce((most, [, , value]) => Math.max(most, Math.abs(value)), 1e-12);
}

/** Whether a head may also do harm, so that the sign of an effect says something. */
function hasSigns({ values }: MattersValues): boolean {
  return values.some(([, , value]) => value < 0);
}

/** "+.31", "−.004"; ".31" where no effect is below 0. */
function effectText(of: MattersValues, value: number): string {
  if (value === 0) return "0";
  const sign = value < 0 ? "−" : "+";
  return `${hasSigns(of) ? sign : ""}${distance(Math.abs(value))}`;
}

/** A blank map to draw a pattern on, and the heads that look most like it: on this text, or over those of an atlas. */
export function Sketch({ live, store }: LiveParts) {
  const [board, over, problem] = [useSignal<Drawing>(emptyBoard()), useSignal("text"), useSignal("")];
  const ofAtlas = useSignal<(Sketched & { readonly stack: string }) | null>(null);
  const { atlas } = live.facts;
  const isAtlas = over.value === "atlas";
  useEffect(() => {
    if (!isAtlas || ofAtlas.peek()) return;
    live.model.atlas().then(
      (read) => (ofAtlas.value = { ...read, boards: meanBoards(fromBase64(read.mean_maps), read.side) }),
      (error) => (problem.value = messageOf(error)),
    );
  }, [isAtlas, live, ofAtlas, problem]);
  const shown = useComputed(() => (over.value === "atlas" ? ofAtlas.value : sketchedOf(store)));
  /** An atlas is of one stack. */
  const isHere = useComputed(() => {
    const of = over.value === "atlas" ? ofAtlas.value?.stack : undefined;
    return (of ?? store.pieceStack.value.name) === store.pieceStack.value.name;
  });
  useSignalEffect(() => {
    const likeness = isHere.value && shown.value ? likest(board.value, shown.value) : [];
    const order = likeness.map(({ layer, head, likeness: value }) => [layer, head, value] as const);
    store.ranked.value = ranking(store.pieceStack.value, "like the drawing", order, shortWeight);
    if (store.ranked.value && store.view.peek() !== "overview") store.choose({ view: "overview" });
  });
  useEffect(
    () => () => {
      store.ranked.value = null;
    },
    [store],
  );
  const fromHead = () => {
    const [layer, head] = [store.layerNumber.value, store.stack.value.head_numbers[store.head.value]];
    const at = shown.value?.heads.findIndex((of) => of[0] === layer && of[1] === head) ?? -1;
    board.value = shown.value?.boards[at] ?? board.value;
  };
  return (
    <div class="live-sketch stack top">
      <div class="live-legend row wrap">
        {atlas > 0 && (
          <Segmented
            label="Heads are ranked on"
            options={["text", "atlas"]}
            labels={{ text: "this text", atlas: `the atlas (${counted(atlas, "text")})` }}
            chosen={over.value}
            onChoose={(chosen) => ([over.value, problem.value] = [chosen, ""])}
          />
        )}
        <span>
          Draw where tokens look: rows look, columns are looked at
          {isAtlas && ", the first six and the last six tokens of a text"}. All heads stand by the correlation with{" "}
          {isAtlas ? "their mean map" : "their weights"}.
        </span>
        <small role="alert">
          {isHere.value ? problem.value : `The atlas has the heads of the stack ${ofAtlas.value?.stack} alone.`}
        </small>
      </div>
      <SketchBoard board={board.value} ends={isAtlas} onDraw={(drawn) => (board.value = drawn)}>
        <Quiet data-stamp-head onClick={fromHead}>
          as the shown head
        </Quiet>
      </SketchBoard>
    </div>
  );
}

/** The small pictures of all heads as drawings. */
function sketchedOf({ thumbs, stack }: Store): Sketched | null {
  const [of, { layers, head_numbers: numbers }] = [thumbs.value, stack.value];
  if (!of) return null;
  const heads = layers.flatMap(({ layer }) => numbers.map((head) => [layer, head] as const));
  const boards = heads.map((_, at) => {
    // Multiples of the even share of a query as parts of its sum: its weights.
    const rows = Array.from({ length: of.queries }, (_, query) => {
      const row = of.row(at, query);
      const sum = row.reduce((all, lift) => all + lift, 0) || 1;
      return row.map((lift) => lift / sum);
    });
    return boardOf((query, key) => rows[query][key], of.queries, of.keys);
  });
  return { heads, boards };
}
