import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageTokens } from "../../contract/page";
import { textOn } from "../../draw/color";
import type { Side } from "../../draw/place";
import { cssColor, type Ramp, rampColor, signedByte, signedRamp, weightRamp } from "../../draw/ramps";
import { toByte } from "../../draw/weights";
import type { ViewParts } from "../../parts/mount";
import { Scale, WEIGHT_TICKS } from "../../parts/Scale";
import { reportDrawn } from "../../parts/Themed";
import { readable } from "../../state/label";
import { openHead } from "../../state/selection";
import type { Store } from "../../state/store";
import { shortWeight, signedNumber } from "../../state/words";
import { chosenPair } from "./chosen";
import { type PairTile, strongestCells, tileLoader } from "./tile";

/** One query and one key: what every head of every layer has between them. */
export function PairView({ store }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const tile = useSignal<PairTile | null>(null);
  const pair = useComputed(() => chosenPair(store));
  const quantity = store.quantity;
  const load = useRef(tileLoader(store, (made) => (tile.value = made)));
  useSignalEffect(() => {
    if (pair.value) load.current(store.stack.value, pair.value, quantity.value);
  });
  useSignalEffect(() => {
    if (tile.value?.complete && store.shown.value) reportDrawn(root.current, store, store.shown.value);
  });
  if (!pair.value) return null;
  const { query, key } = store.stack.value;
  const score = quantity.value === "score";
  const ramp = score ? signedRamp(store.dark.value) : weightRamp(store.dark.value);
  const most = tile.value?.most ?? 1;
  return (
    <div class="pair-view" ref={root}>
      <div class="view-bar">
        <TokenChoice store={store} side="query" tokens={query} chosen={pair.value.query} />
        <span aria-hidden="true">→</span>
        <TokenChoice store={store} side="key" tokens={key} chosen={pair.value.key} />
        {score ? (
          <Scale
            ramp={ramp}
            ticks={[
              [0, signedNumber(-most)],
              [0.5, "0"],
              [1, signedNumber(most)],
            ]}
            label="score"
          />
        ) : (
          <Scale ramp={ramp} ticks={WEIGHT_TICKS} label="weight" />
        )}
      </div>
      {tile.value && <Tile store={store} tile={tile.value} ramp={ramp} score={score} />}
      {tile.value && <Strongest tile={tile.value} score={score} />}
      <p class="note">All heads of all layers on one scale; nothing is left out or renormalised here.</p>
    </div>
  );
}

interface TokenChoiceProps {
  store: Store;
  side: Side;
  tokens: PageTokens;
  chosen: number;
}

function TokenChoice({ store, side, tokens, chosen }: TokenChoiceProps) {
  return (
    <label class="choice">
      <span>{side}</span>
      <select
        data-pair-side={side}
        value={String(chosen)}
        onChange={(event) => {
          const token = Number(event.currentTarget.value);
          store.select((now) => ({ ...now, [side]: [token] }));
        }}
      >
        {tokens.labels.map((label, token) => (
          <option key={token} value={String(token)}>
            {token} {readable(label).text.slice(0, 40)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TileProps {
  store: Store;
  tile: PairTile;
  ramp: Ramp;
  score: boolean;
}

function Tile({ store, tile, ramp, score }: TileProps) {
  const { layers, head_numbers: numbers } = store.stack.value;
  const open = (layer: number, head: number, add: boolean) =>
    store.select((now) => openHead(now, layer, head, store.stack.value, add));
  return (
    <div
      class="pair-tile"
      role="grid"
      aria-label="Rows are layers, columns are heads"
      style={{ "--heads": numbers.length }}
    >
      <div class="pair-row" role="row">
        <span class="grid-layer" role="columnheader" title="Rows are layers, columns are heads">
          L
        </span>
        {numbers.map((number) => (
          <span key={number} class="grid-layer" role="columnheader">
            {number}
          </span>
        ))}
      </div>
      {layers.map(({ layer }, row) => (
        <div class="pair-row" role="row" key={layer}>
          <span class="grid-layer" role="rowheader">
            {layer}
          </span>
          {numbers.map((number, head) => {
            const value = tile.values[row]?.[head];
            const color = rampColor(ramp, byteOf(value, score, tile.most));
            const text = value === undefined ? "" : score ? signedNumber(value) : shortWeight(value);
            return (
              <button
                type="button"
                role="gridcell"
                key={number}
                class="pair-cell"
                data-pair-cell={`${layer}-${number}`}
                aria-selected={store.layerNumber.value === layer && store.heads.value.includes(head)}
                aria-label={`Layer ${layer}, head ${number}: ${text || "not in this page"}`}
                title={`Layer ${layer}, head ${number}`}
                style={{ background: cssColor(color), color: textOn(color) }}
                onClick={(event) => open(layer, number, event.shiftKey)}
              >
                {text}
              </button>
            );
          })}
        </div>
      ))}
    </div>
  );
}

function byteOf(value: number | undefined, score: boolean, most: number): number {
  if (value === undefined || !Number.isFinite(value)) return score ? 128 : 0;
  return score ? signedByte(value, most) : toByte(value);
}

function Strongest({ tile, score }: { tile: PairTile; score: boolean }) {
  const cells = strongestCells(tile, 5);
  return (
    <p class="note" data-strongest>
      strongest (layer-head):{" "}
      {cells.map(({ name, value }) => `${name} ${score ? signedNumber(value) : shortWeight(value)}`).join(" · ")}
    </p>
  );
}
