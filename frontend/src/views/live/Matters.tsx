import { useComputed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { MattersValues } from "../../contract/live";
import { rampCss, signedByte, signedRamp } from "../../draw/ramps";
import { distance } from "../../state/moved";
import { mattersState } from "../../state/ranking";
import { openHead } from "../../state/selection";
import type { Store } from "../../state/store";
import { percent } from "../../state/words";
import type { LiveParts } from "./LiveBar";

const METHODS = {
  gradient: ["quick, by gradient", "One pass forward and back: how strongly, without a sign (Michel et al. 2019)"],
  exact: ["exact, head by head", "Each head is silenced in turn"],
} as const;

/** Which heads the guess rests on: asked for, with progress, shown as a map. */
export function Matters({ live, store }: LiveParts) {
  const state = useMemo(() => mattersState(live), [live]);
  useEffect(() => state.stop, [state]);
  const progress = state.progress.value;
  const place = useComputed(() => live.answer.value.opening.output?.places.at(-1)?.at);
  const at = place.value;
  return (
    <>
      <div class="live-keep">
        <span>Which heads does the last guess rest on?</span>
        {live.facts.matters.map((method) => (
          <button
            key={method}
            class="live-go"
            data-matters={method}
            title={METHODS[method][1]}
            disabled={progress !== null}
            onClick={() => void state.start(method, at === undefined || at < 0 ? {} : { at })}
          >
            {METHODS[method][0]}
          </button>
        ))}
        {progress !== null && (
          <>
            <progress value={progress} aria-label="How far it got" />
            <small>{percent(progress)}</small>
            <button class="quiet" data-matters-stop onClick={state.stop}>
              cancel
            </button>
          </>
        )}
        <small role="alert">{state.problem.value}</small>
      </div>
      {state.values.value.map((values) => (
        <HeadMap key={values.stack} values={values} store={store} />
      ))}
    </>
  );
}

/** A number of each head, as a map of buttons that open them. */
function HeadMap({ values: { stack: name, values, label }, store }: { values: MattersValues; store: Store }) {
  const stack = store.page.stacks.find((one) => one.name === name);
  if (!stack) return null;
  const most = values.reduce((largest, [, , value]) => Math.max(largest, Math.abs(value)), 1e-12);
  const ramp = signedRamp(store.dark.value);
  const byHead = new Map(values.map(([layer, head, value]) => [`${layer}-${head}`, value]));
  const top = [...values].sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])).slice(0, 3);
  return (
    <div class="live-map" data-matters-map={name}>
      <p class="live-note">
        {label}. Most: {top.map(([layer, head, value]) => `${layer}-${head} ${signed(value)}`).join(", ")}.
      </p>
      <div role="group" aria-label={`${label}, each head`} style={{ "--heads": stack.head_numbers.length }}>
        {stack.layers.map(({ layer }) =>
          stack.head_numbers.map((head) => {
            const value = byHead.get(`${layer}-${head}`) ?? 0;
            return (
              <button
                key={`${layer}-${head}`}
                data-cell={`${layer}-${head}`}
                aria-label={`Head ${layer}-${head}: ${signed(value)}`}
                title={`Head ${layer}-${head}: ${signed(value)}`}
                style={{ background: rampCss(ramp, signedByte(value, most)) }}
                onClick={() => store.select((now) => openHead(now, layer, head, stack, false))}
              />
            );
          }),
        )}
      </div>
    </div>
  );
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${distance(Math.abs(value))}`;
}
