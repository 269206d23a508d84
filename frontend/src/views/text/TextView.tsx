import { useComputed, useSignal } from "@preact/signals";
import type { PageStack } from "../../contract/page";
import { received } from "../../draw/focus";
import { otherSide, type Side } from "../../draw/place";
import { signedRamp, wordRamp } from "../../draw/ramps";
import { scoreRow } from "../../draw/scores";
import { AgreementLine } from "../../parts/AgreementLine";
import type { ViewParts } from "../../parts/mount";
import { Scale } from "../../parts/Scale";
import { Segmented } from "../../parts/Segmented";
import type { Store } from "../../state/store";
import { counted, shortWeight, signedNumber } from "../../state/words";
import { TextBlock } from "./TextBlock";

const DIRECTIONS = ["received", "given"] as const;
type Direction = (typeof DIRECTIONS)[number];

/** How strongly each token of one side is coloured. */
export interface Heat {
  readonly side: Side;
  readonly values: Float32Array;
  /** The value that has the full colour. */
  readonly most: number;
  readonly signed: boolean;
}

/** The words themselves, with heat by the attention that they receive or give. */
export function TextView({ store }: ViewParts) {
  const direction = useSignal<Direction>("received");
  const heat = useComputed(() => heatOf(store, direction.value));
  const stack = store.shownStack.value ?? store.stack.value;
  const acting: Side = direction.value === "received" ? "query" : "key";
  const sides = sameText(stack) ? [acting] : (["query", "key"] as const);
  return (
    <div class="text-view">
      <div class="view-bar">
        <Segmented
          label="Direction"
          options={DIRECTIONS}
          chosen={direction.value}
          onChoose={(option) => {
            direction.value = option as Direction;
          }}
        />
        <small class="view-note">{noteOf(store, direction.value)}</small>
        {heat.value && <HeatScale heat={heat.value} dark={store.dark.value} />}
      </div>
      {sides.map((side) => (
        <TextBlock
          key={`${stack.name}-${side}`}
          store={store}
          side={side}
          tokens={stack[side]}
          title={sides.length > 1 ? `${side} tokens` : ""}
          heat={heat}
          both={sides.length === 1}
        />
      ))}
      {store.quantity.value === "score" && <AgreementLine store={store} />}
    </div>
  );
}

function sameText({ query, key }: PageStack): boolean {
  return query.pieces.length === key.pieces.length && query.pieces.every((piece, token) => piece === key.pieces[token]);
}

function heatOf(store: Store, direction: Direction): Heat | null {
  const [shown, weights, mask] = [store.shown.value, store.weights.value, store.mask.value];
  if (!shown || !weights || !mask) return null;
  const [focus, heads] = [store.focus.value, store.heads.value];
  if (focus?.side === "query" && store.quantity.value === "score" && shown.scores) {
    const values = scoreRow(shown.scores, heads[0], focus.tokens[0]);
    const finite = values.filter((value) => Number.isFinite(value));
    return { side: "key", values, most: Math.max(...finite.map(Math.abs), 1e-6), signed: true };
  }
  const side = focus ? otherSide(focus.side) : direction === "received" ? "key" : "query";
  const values = focus
    ? (store.attention.value?.mean ?? new Float32Array())
    : side === "key"
      ? received(weights, heads, mask).mean
      : strongestGiven(store);
  return { side, values, most: Math.max(...values, 1e-6), signed: false };
}

/** The strongest weight that each query gives, as mean over the heads. */
function strongestGiven(store: Store): Float32Array {
  const [weights, mask, heads] = [store.weights.value, store.mask.value, store.heads.value];
  if (!weights || !mask) return new Float32Array();
  return Float32Array.from({ length: weights.queries }, (_, query) => {
    if (!mask.query[query]) return 0;
    const strongest = heads.map((head) =>
      weights.row(head, query).reduce((most, weight, key) => (mask.key[key] ? Math.max(most, weight) : most), 0),
    );
    return strongest.reduce((sum, weight) => sum + weight, 0) / heads.length;
  });
}

function noteOf(store: Store, direction: Direction): string {
  const heads = store.heads.value;
  const numbers = store.shownStack.value?.head_numbers ?? [];
  const who = heads.length === 1 ? `head ${numbers[heads[0]]}` : `mean of ${counted(heads.length, "head")}`;
  const focus = store.focus.value;
  if (focus?.side === "query" && store.quantity.value === "score")
    return `scores of its keys, head ${numbers[heads[0]]}`;
  if (focus) return `${focus.side === "query" ? "where it looks" : "who looks at it"} · ${who}`;
  const what = direction === "received" ? "attention received, mean over queries" : "strongest weight given";
  return `${what} · ${who}`;
}

function HeatScale({ heat: { most, signed }, dark }: { heat: Heat; dark: boolean }) {
  const ticks = signed
    ? ([
        [0, signedNumber(-most)],
        [0.5, "0"],
        [1, signedNumber(most)],
      ] as const)
    : ([
        [0, "0"],
        [0.5, shortWeight(most / 4)],
        [1, shortWeight(most)],
      ] as const);
  return <Scale ramp={signed ? signedRamp(dark) : wordRamp(dark)} ticks={ticks} label={signed ? "score" : "weight"} />;
}
