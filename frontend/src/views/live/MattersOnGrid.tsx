import type { MattersValues } from "../../contract/live";
import { type Ramp, rampColor, rampCss, signedByte, signedRamp } from "../../draw/ramps";
import { distance } from "../../state/moved";
import type { LiveParts } from "./LiveBar";

/** Colours of the scale of the legend. */
const STOPS = 9;
/** Mean of a colour's channels below which white reads better on it than black. */
const DARK_PAPER = 128;

/** What each head matters, as the colour of the head wherever it stands, with its scale. */
export function MattersOnGrid({ live, store }: LiveParts) {
  const { shown, onGrid, progress } = live.matters;
  const now = shown.value;
  const values = now?.values.find(({ stack }) => stack === store.pieceStack.value.name);
  if (!now || !values || !onGrid.value) return null;
  const most = largest(values);
  const ramp = signedRamp(store.dark.value);
  const first = hasSigns(values) ? -most : 0;
  const stops = Array.from({ length: STOPS }, (_, at) => first + ((most - first) * at) / (STOPS - 1));
  const colors = stops.map((value) => rampCss(ramp, signedByte(value, most)));
  return (
    <div class="live-legend" data-on-grid={now.method}>
      <style>{rules(values, ramp)}</style>
      <strong>Heads by what they matter</strong>
      <span>
        to {now.words}
        {now.method === "gradient" && (progress.value === null ? ": by gradient only" : ": by gradient, exact to come")}
      </span>
      <span class="weight-scale" title={values.label}>
        {effectText(values, first)}
        <i style={{ background: `linear-gradient(90deg, ${colors.join()})` }} />
        {effectText(values, most)}
      </span>
      <small>{values.label}</small>
      <button
        class="quiet"
        data-off-grid
        onClick={() => {
          onGrid.value = false;
        }}
      >
        show the maps again
      </button>
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
    const ink = rampColor(ramp, byte).reduce((sum, channel) => sum + channel, 0) / 3 < DARK_PAPER ? "#fff" : "#000";
    const names = ["cell", "tile"].map((name) => `[data-${name}="${layer}-${head}"]`);
    const numbers = names.map((name) => `${name}::after`).join();
    return `${names.join()}{background-color:${rampCss(ramp, byte)};color:${ink}}${numbers}{content:"${effectText(of, value)}"/""}`;
  });
  return `${colored.join("")}${HIDDEN}`;
}

/** What stands on a tile, and the scale of all tiles, are of the maps that are covered. */
const HIDDEN = `[data-tile]>*,[data-cell]>*{display:none}.tiles-bar .weight-scale,.all-heads .scale,.model-view .scale{visibility:hidden}[data-tile],[data-cell]{container-type:inline-size}
[data-tile]::after,[data-cell]::after{display:none;font-size:10px;letter-spacing:-0.02em}
@container (min-width:30px){[data-tile]::after,[data-cell]::after{display:block}}`;

function largest({ values }: Pick<MattersValues, "values">): number {
  return values.reduce((most, [, , value]) => Math.max(most, Math.abs(value)), 1e-12);
}

/** Whether a head may also do harm, so that the sign of an effect says something. */
function hasSigns({ values }: MattersValues): boolean {
  return values.some(([, , value]) => value < 0);
}

/** "+.31", "−.004"; ".31" where no effect is below 0. */
export function effectText(of: MattersValues, value: number): string {
  if (value === 0) return "0";
  const sign = value < 0 ? "−" : "+";
  return `${hasSigns(of) ? sign : ""}${distance(Math.abs(value))}`;
}
