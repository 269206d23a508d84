import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { textOn } from "../../draw/color";
import { liftByte, topLift } from "../../draw/lift";
import { type Ramp, rampColor, rampCss, wordRamp } from "../../draw/ramps";
import { largest } from "../../draw/values";
import { density, putPixels } from "../../parts/canvas";
import type { ViewParts } from "../../parts/mount";
import { reportDrawn } from "../../parts/Themed";
import { readable } from "../../state/label";
import { directionOf } from "../../state/script";
import {
  boundsOf,
  chooseSentence,
  chosenSentence,
  liftsOfSentence,
  liftsOfTokens,
  sentenceName,
} from "../../state/sentences";
import { times } from "../../state/words";

/** Tokens that are elements at a time, and where each stands for a sentence. */
const [NEAR, NEAR_SENTENCES] = [280, 24];

/** A long text around one place, coloured by what the chosen sentence looks at, and the whole of it as a strip. */
export function LongText({ store, room }: ViewParts) {
  const box = useRef<HTMLElement>(null);
  const looked = useSignal<{ sentence: number; token: number } | null>(null);
  const lifts = useComputed(() => liftsOfTokens(store, chosenSentence(store)));
  const stack = store.stack.value;
  const { key: tokens } = stack;
  const chosen = chosenSentence(store);
  const [first, end] = boundsOf(stack, "query", chosen);
  const near = Math.min(tokens.count === undefined ? NEAR : NEAR_SENTENCES, tokens.labels.length);
  // Where nobody has looked elsewhere the chosen sentence is in sight.
  const middle = looked.value?.sentence === chosen ? looked.value.token : first;
  const from = Math.round(Math.max(0, Math.min(tokens.labels.length - near, middle - near / 4)));
  const starts = stack.sentences?.key ?? [];
  const begin = starts.filter((start) => start <= from).at(-1) ?? 0;
  const shown = from - begin < near / 2 ? begin : from;
  const top = topLift(tokens.labels.length);
  const ramp = useComputed(() => wordRamp(store.ramp.value));
  const height = room.value - 20;
  useLayoutEffect(() => {
    const read = looked.value?.sentence === chosen ? null : box.current?.querySelector<HTMLElement>("[data-read]");
    if (box.current) box.current.scrollTop = Math.max(0, (read?.offsetTop ?? 0) - 60);
  }, [chosen, shown, looked.value]);
  const share = (token: number) => `${(100 * token) / tokens.labels.length}%`;
  return (
    <div class="long-text">
      <section
        ref={box}
        class="text-scroll words"
        aria-label="The text"
        dir={directionOf(tokens)}
        style={{ height: `${height}px` }}
      >
        {tokens.labels.slice(shown, shown + near).map((label, place) => {
          const token = shown + place;
          const lift = lifts.value?.[token] ?? 0;
          const byte = liftByte(lift, top);
          return [
            tokens.continues[token] ? null : " ",
            <span
              key={token}
              class="word"
              data-token={token}
              data-side="key"
              data-continues={tokens.continues[token] || undefined}
              data-read={(token >= first && token < end) || undefined}
              title={times(lift)}
              style={
                byte > 0
                  ? { background: rampCss(ramp.value, byte), color: textOn(rampColor(ramp.value, byte)) }
                  : undefined
              }
            >
              {readable(label).text}
            </span>,
          ];
        })}
      </section>
      <Strip
        store={store}
        lifts={lifts}
        ramp={ramp}
        top={top}
        height={height}
        window={[shown, near].map(share)}
        onGo={(part) => {
          looked.value = { sentence: chosen, token: Math.floor(part * tokens.labels.length) };
        }}
      />
    </div>
  );
}

interface StripProps {
  store: ViewParts["store"];
  lifts: ReadonlySignal<Float32Array | null>;
  ramp: ReadonlySignal<Ramp>;
  top: number;
  height: number;
  /** Where what is read begins, and how much of all that is. */
  window: readonly string[];
  onGo: (part: number) => void;
}

/** The whole text, each line the most of its tokens; a click goes there. */
function Strip({ store, lifts, ramp, top, height, window, onGo }: StripProps) {
  const root = useRef<HTMLDivElement>(null);
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [now, colors] = [lifts.value, ramp.value];
    if (!canvas || !now) return;
    const lines = Math.max(1, Math.round(canvas.clientHeight * density()));
    const pixels = Uint32Array.from({ length: lines }, (_, line) => {
      const start = Math.floor((line * now.length) / lines);
      const stop = Math.max(start + 1, Math.floor(((line + 1) * now.length) / lines));
      return colors[liftByte(largest(now.subarray(start, stop)), top)];
    });
    putPixels(canvas, new Uint8ClampedArray(pixels.buffer), { width: 1, height: lines });
    if (store.shown.value) reportDrawn(canvas, store, store.shown.value);
  });
  const go = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    if (event.buttons > 0) onGo((event.clientY - box.top) / box.height);
  };
  const [from, seen] = window;
  return (
    <div
      class="minimap"
      ref={root}
      data-minimap
      aria-hidden="true"
      title="The whole text; click to go there"
      style={{ width: "18px", height: `${height}px`, "--from": from, "--seen": seen }}
      onPointerDown={go}
      onPointerMove={go}
    >
      <canvas data-canvas="minimap" />
      <span class="minimap-window" />
    </div>
  );
}

const MOST_LISTED = 8;

/** The sentences that the chosen one looks at most. */
export function SentenceCard({ store }: Pick<ViewParts, "store">) {
  const stack = store.stack.value;
  const chosen = chosenSentence(store);
  const lifts = liftsOfSentence(store, chosen);
  const order = lifts ? [...lifts.keys()].sort((a, b) => lifts[b] - lifts[a]).slice(0, MOST_LISTED) : [];
  const listed = order.filter((sentence) => (lifts?.[sentence] ?? 0) > 0);
  return (
    <aside
      class="card pin-card"
      aria-label="Numbers"
      data-inspector
      style={{ "--kind": store.palette.value[store.heads.value[0] ?? 0] }}
    >
      <strong data-chosen>Sentence {chosen + 1} looks at</strong>
      <p class="sentence">even: 1 × for every sentence that it sees</p>
      <ol class="token-list sentences">
        {listed.map((sentence) => (
          <li key={sentence} data-listed={sentence}>
            <button class="label" onClick={() => chooseSentence(store, chosen, sentence)}>
              {sentence + 1} <bdi>{sentenceName(stack, "key", sentence, 28)}</bdi>
            </button>
            <span
              class="bar"
              style={{ "--length": `${(100 * (lifts?.[sentence] ?? 0)) / (lifts?.[listed[0]] || 1)}%` }}
            />
            <span class="number">{times(lifts?.[sentence] ?? 0)}</span>
          </li>
        ))}
      </ol>
    </aside>
  );
}
