import { useComputed, useSignal } from "@preact/signals";
import type { PageQuantity, PageStack } from "../../contract/page";
import type { RGB } from "../../draw/color";
import { received } from "../../draw/focus";
import { otherSide, type Side } from "../../draw/place";
import { type Ramp, rampColor, signedRamp, veiled, wordRamp } from "../../draw/ramps";
import { largest } from "../../draw/values";
import type { ViewParts } from "../../parts/mount";
import { Scale } from "../../parts/Scale";
import { Segmented } from "../../parts/Segmented";
import { NO_PICTURES } from "../../source/pictures";
import { readable } from "../../state/label";
import { ticksOf } from "../../state/quantity";
import type { Store } from "../../state/store";
import { amount, counted } from "../../state/words";
import { TextBlock } from "./TextBlock";

const DIRECTIONS = ["received", "given"] as const;
type Direction = (typeof DIRECTIONS)[number];
const PINNED = "pinned";

/** How strongly each token of one side is coloured. */
export interface Heat {
  readonly side: Side;
  readonly values: Float32Array;
  /** The value that has the full colour. */
  readonly most: number;
  readonly facts: PageQuantity;
  readonly ramp: Ramp;
  /** The byte of the ramp that stands for nothing, and the colour that it has behind words. */
  readonly none: number;
  readonly paper: RGB;
}

/** The words themselves, with heat by the attention that they receive or give. */
export function TextView({ store }: ViewParts) {
  const direction = useSignal<Direction>("received");
  const heat = useComputed(() => heatOf(store, direction.value));
  const stack = store.shownStack.value ?? store.stack.value;
  const pinned = pinnedName(store);
  const acting: Side = direction.value === "received" ? "query" : "key";
  const sides = sameText(stack) ? [acting] : (["query", "key"] as const);
  // Words without a picture are the same for both records.
  const sets = stack.query.areas || stack.key.areas ? store.pictures.value : NO_PICTURES;
  return (
    <div class="text-view">
      <div class="view-bar">
        <Segmented
          label="Direction"
          options={pinned ? [...DIRECTIONS, PINNED] : DIRECTIONS}
          labels={{ [PINNED]: pinned ?? "" }}
          chosen={pinned ? PINNED : direction.value}
          onChoose={(option) => {
            if (option === PINNED) return;
            direction.value = option as Direction;
            store.release();
          }}
        />
        <small class="view-note">{noteOf(store, direction.value)}</small>
        <NormNote store={store} />
        {heat.value && <HeatScale heat={heat.value} />}
      </div>
      {sets.map((pictures, number) =>
        sides.map((side) => (
          <TextBlock
            key={`${stack.name}-${side}-${number}`}
            store={store}
            side={side}
            tokens={stack[side]}
            pictures={pictures}
            title={[sets.length > 1 && "AB"[number], sides.length > 1 && `${side} tokens`].filter(Boolean).join(" · ")}
            heat={heat}
            both={sides.length === 1}
          />
        )),
      )}
    </div>
  );
}

/** "from berries": what is shown while tokens are pinned; null where none is. */
function pinnedName({ pins, shownStack, stack }: Store): string | null {
  const side = pins.value.query.length > 0 ? "query" : "key";
  const [first, ...more] = pins.value[side];
  if (first === undefined) return null;
  const name = readable((shownStack.value ?? stack.value)[side].labels[first]).text;
  const who = more.length > 0 ? `${name} and ${more.length} more` : name;
  return side === "query" ? `from ${who}` : `to ${who}`;
}

function sameText({ query, key }: PageStack): boolean {
  return query.pieces.length === key.pieces.length && query.pieces.every((piece, token) => piece === key.pieces[token]);
}

function heatOf(store: Store, direction: Direction): Heat | null {
  const [shown, values, mask] = [store.shown.value, store.values.value, store.mask.value];
  if (!shown || !values || !mask) return null;
  const focus = store.focus.value;
  const side = focus ? otherSide(focus.side) : direction === "received" ? "key" : "query";
  const heat = focus
    ? (store.attention.value?.mean ?? new Float32Array())
    : side === "key"
      ? received(values, store.maps.value, mask).mean
      : strongestGiven(store);
  const facts = store.quantity.value;
  const none = facts.signed ? 128 : 0;
  const ramp = (facts.signed ? signedRamp : wordRamp)(store.dark.value);
  const over = shown.stack[side].areas && store.pictures.value.some(({ length }) => length);
  return {
    side,
    values: heat,
    most: largest(heat) || 1e-6,
    facts,
    ramp: over ? veiled(ramp, none) : ramp,
    none,
    paper: rampColor(ramp, none),
  };
}

/** The value of largest size that each query gives, as mean over the maps. */
function strongestGiven(store: Store): Float32Array {
  const [values, mask, maps] = [store.values.value, store.mask.value, store.maps.value];
  if (!values || !mask) return new Float32Array();
  const larger = (a: number, b: number) => (Math.abs(b) > Math.abs(a) ? b : a);
  const strongest = (row: Float32Array) =>
    row.reduce((most, value, key) => (mask.key[key] && Number.isFinite(value) ? larger(most, value) : most), 0);
  return Float32Array.from({ length: values.queries }, (_, query) => {
    if (!mask.query[query]) return 0;
    return maps.reduce((sum, map) => sum + strongest(values.row(map, query)), 0) / maps.length;
  });
}

function noteOf(store: Store, direction: Direction): string {
  const heads = store.heads.value;
  const numbers = store.shownStack.value?.head_numbers ?? [];
  const { name, label, per } = store.quantity.value;
  const some = heads.length === 1 ? `head ${numbers[heads[0]]}` : `mean of ${counted(heads.length, "head")}`;
  const who = per === "layer" ? "all heads together" : some;
  const what = name === "weight" ? "attention" : label;
  const focus = store.focus.value;
  if (focus) return `${what}: ${focus.side === "query" ? "where it looks" : "who looks at it"} · ${who}`;
  return `${direction === "received" ? `${what} received, mean over queries` : `strongest ${label} given`} · ${who}`;
}

function NormNote({ store: { valueNorms } }: { store: Store }) {
  if (!valueNorms.value) return null;
  return (
    <small class="norm-note" title="Length of what a key adds when it has all the weight, mean of the chosen heads">
      under the words: ‖f(x)‖ ≤ {amount(valueNorms.value.most)}
    </small>
  );
}

function HeatScale({ heat: { most, facts, ramp } }: { heat: Heat }) {
  const ticks = ticksOf(facts, most);
  const few = facts.signed ? ticks : [ticks[0], ticks[2], ticks[4]];
  return <Scale ramp={ramp} ticks={few} label={facts.label} />;
}
