import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { PageTokens } from "../../contract/page";
import { textOn } from "../../draw/color";
import type { Side } from "../../draw/place";
import { type Ramp, rampColor, rampCss, signedByte, signedRamp, weightRamp } from "../../draw/ramps";
import { toByte } from "../../draw/weights";
import type { ViewParts } from "../../parts/mount";
import { Scale } from "../../parts/Scale";
import { reportDrawn } from "../../parts/Themed";
import { useWidth } from "../../parts/useWidth";
import { readable } from "../../state/label";
import { ticksOf, valueText } from "../../state/quantity";
import { chooseLayer, openHead } from "../../state/selection";
import type { Store } from "../../state/store";
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
    if (pair.value) load.current(store.stack.value, pair.value, quantity.value).catch(store.fail);
  });
  useSignalEffect(() => {
    if (tile.value?.complete && store.shown.value) reportDrawn(root.current, store, store.shown.value);
  });
  if (!pair.value) return null;
  const { query, key } = store.stack.value;
  const facts = quantity.value;
  const ramp = (facts.signed ? signedRamp : weightRamp)(store.dark.value);
  const top = facts.name === "weight" ? 1 : (tile.value?.most ?? 1);
  return (
    <div class="pair-view" ref={root}>
      <div class="view-bar">
        <TokenChoice store={store} side="query" tokens={query} chosen={pair.value.query} />
        <span aria-hidden="true">→</span>
        <TokenChoice store={store} side="key" tokens={key} chosen={pair.value.key} />
        <Scale ramp={ramp} ticks={ticksOf(facts, top)} label={facts.label} />
      </div>
      {tile.value && <Tile store={store} tile={tile.value} ramp={ramp} />}
      {tile.value && <Strongest tile={tile.value} />}
      <p class="note">
        {facts.per === "layer"
          ? "All layers on one scale, in each all heads together"
          : "All heads of all layers on one scale"}
        ; nothing is left out or renormalised.
      </p>
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
          store.select((now) => ({ ...now, [side]: [store.pieceAt({ side, token })] }));
        }}
      >
        {tokens.labels.map((label, token) => (
          <option key={token} value={String(token)}>
            {token} {readable(label, 40).text}
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
}

/** Width of a cell from which on it has its number, and from which on that has its "×". */
const [LEAST_NUMBER, LEAST_TIMES] = [25, 42];
/** Width of the numbers of layers. */
const LABELS = 28;

function Tile({ store, tile, ramp }: TileProps) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const { layers, head_numbers } = store.stack.value;
  const { quantity } = tile;
  const together = quantity.per === "layer";
  const numbers = together ? [null] : head_numbers;
  const print = valueText(quantity);
  const wide = (width.value - LABELS) / numbers.length;
  const numbered = wide >= LEAST_NUMBER;
  const every = Math.max(1, Math.ceil(18 / Math.max(1, wide)));
  const written = (text: string) => (numbered ? (wide < LEAST_TIMES ? text.replace(" ×", "") : text) : "");
  const open = (layer: number, head: number | null, add: boolean) =>
    store.select((now) =>
      head === null ? chooseLayer(now, layer) : openHead(now, layer, head, store.stack.value, add),
    );
  return (
    <div
      class="pair-tile"
      ref={root}
      data-plain={!numbered || undefined}
      role="grid"
      aria-label="Rows are layers, columns are heads"
      style={{ "--heads": numbers.length }}
    >
      <div class="pair-row" role="row">
        <span class="grid-layer" role="columnheader" title="Rows are layers, columns are heads">
          L
        </span>
        {numbers.map((number, at) => (
          <span key={number} class="grid-layer" role="columnheader">
            <span class={at % every ? "spoken" : ""}>{number ?? "all heads together"}</span>
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
            const byte = byteOf(value, tile);
            const text = value === undefined || Number.isNaN(value) ? "" : print(value);
            const name = together ? `Layer ${layer}` : `Layer ${layer}, head ${number}`;
            return (
              <button
                role="gridcell"
                key={number}
                class="pair-cell"
                data-pair-cell={together ? `${layer}` : `${layer}-${number}`}
                aria-selected={store.layerNumber.value === layer && (together || store.heads.value.includes(head))}
                aria-label={`${name}: ${text || "not in this page"}`}
                title={`${name}: ${text || "not in this page"}`}
                style={{ background: rampCss(ramp, byte), color: textOn(rampColor(ramp, byte)) }}
                onClick={(event) => open(layer, number, event.shiftKey)}
              >
                {written(text)}
              </button>
            );
          })}
        </div>
      ))}
    </div>
  );
}

function byteOf(value: number | undefined, { quantity, most }: PairTile): number {
  if (value === undefined || !Number.isFinite(value)) return quantity.signed ? 128 : 0;
  if (quantity.signed) return signedByte(value, most);
  return toByte(quantity.name === "weight" ? value : value / most);
}

function Strongest({ tile }: { tile: PairTile }) {
  const print = valueText(tile.quantity);
  const cells = strongestCells(tile, 5);
  return (
    <p class="note" data-strongest>
      {tile.quantity.name === "score" ? "highest" : "strongest"} (
      {tile.quantity.per === "layer" ? "layer" : "layer-head"}
      ): {cells.map(({ name, value }) => `${name} ${print(value)}`).join(" · ")}
    </p>
  );
}
