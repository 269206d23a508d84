import type { LensLayer } from "../../contract/live";
import { chance } from "../../state/chance";
import { readable } from "../../state/label";

/** What each layer would say: the likeliest, and in the tooltip those after it. */
export function LensLayers({ layers }: { layers: readonly LensLayer[] }) {
  return (
    <ol class="live-lens flex wrap" aria-label="Logit lens: what each layer would say" data-lens-layers>
      {layers.map(({ layer, predictions: [best, ...others] }) => (
        <li key={layer} title={others.map(({ label, probability }) => `${label} ${chance(probability)}`).join(" · ")}>
          <small>layer {layer}</small> <bdi>{readable(best?.label ?? "", 24).text}</bdi>{" "}
          <small>{chance(best?.probability)}</small>
        </li>
      ))}
    </ol>
  );
}
