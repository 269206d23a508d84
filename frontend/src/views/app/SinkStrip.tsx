import { VIEWS_WITH } from "../../contract/values";
import { Check } from "../../parts/Check";
import { readable } from "../../state/label";
import type { Store } from "../../state/store";
import { counted, percent } from "../../state/words";

/** Keys that take most of the mass, and the choice to leave them out. */
export function SinkStrip({ store }: { store: Store }) {
  // The sinks last: they need all heads of the layer, which other views may never ask for.
  const stack = store.shownStack.value;
  // The neuron view shows softmax as it is, and the other views all heads at once.
  if (!VIEWS_WITH.mask.includes(store.view.value)) return null;
  const sinks = store.sinks.value;
  // Its place is kept, so that the stage stands still from layer to layer.
  if (!stack || sinks.length === 0) {
    return <div class="sink-strip">{stack && "No key takes most of the attention of these heads."}</div>;
  }
  const kept = store.keepSinks.value;
  const weights = store.quantity.value.name === "weight";
  const part = sinks.reduce((sum, sink) => sum + sink.part, 0);
  return (
    <div class="sink-strip" data-sinks>
      <span
        class="sink-word"
        title="Keys that receive at least 10 % of all attention of the chosen heads, and four times the mean"
      >
        {counted(sinks.length, "sink")} {sinks.length === 1 ? "takes" : "take"} {percent(part)}
        {!weights && " of the weight"}
      </span>
      <span class="sink-bars">
        {sinks.map(({ key, part }) => (
          <span key={key} class="sink" style={{ "--part": part }} data-left-out={!kept || undefined}>
            <bdi class="label">{readable(stack.key.labels[key]).text}</bdi>
            <small>{percent(part)}</small>
          </span>
        ))}
      </span>
      <Check
        name="data-without-sinks"
        title={weights ? "Exclude these keys and renormalise the rest of each row" : "Exclude these keys"}
        checked={!kept}
        label={`exclude ${sinks.length === 1 ? "this sink" : "these sinks"}`}
        onChange={(without) => store.choose({ sinks: !without })}
      />
      {!kept && weights && <small data-removed>{percent(part)} removed, the rest renormalised</small>}
    </div>
  );
}
