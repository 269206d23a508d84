import { useComputed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { textOn } from "../../draw/color";
import { liftByte, topLift } from "../../draw/lift";
import { rampColor, rampCss, wordRamp } from "../../draw/ramps";
import { largest } from "../../draw/values";
import { Minimap } from "../../parts/Minimap";
import type { ViewParts } from "../../parts/mount";
import { reportDrawn } from "../../parts/mount";
import { tokenMarks } from "../../parts/tokenList";
import { directionOf } from "../../state/script";
import {
  boundsOf,
  chooseSentence,
  chosenSentence,
  liftsOfSentence,
  liftsOfTokens,
  sentenceName,
} from "../../state/sentences";
import type { Store } from "../../state/store";
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
  // Each line has the colour of the most that one of its tokens has.
  const colors = useComputed(() => {
    const [now, shades] = [lifts.value, ramp.value];
    return (
      now && {
        count: now.length,
        colorOf: (start: number, stop: number) => shades[liftByte(largest(now.subarray(start, stop)), top)],
      }
    );
  });
  const height = room.value - 20;
  useLayoutEffect(() => {
    const read = looked.value?.sentence === chosen ? null : box.current?.querySelector<HTMLElement>("[data-read]");
    if (box.current) box.current.scrollTop = Math.max(0, (read?.offsetTop ?? 0) - 60);
  }, [chosen, shown, looked.value]);
  const share = (token: number) => `${(100 * token) / tokens.labels.length}%`;
  return (
    <div class="long-text flex slim">
      <section
        ref={box}
        class="text-scroll words slim"
        aria-label="The text"
        dir={directionOf(tokens)}
        style={{ height: `${height}px` }}
      >
        {tokens.labels.slice(shown, shown + near).map((_, place) => {
          const token = shown + place;
          const { text, marks } = tokenMarks(tokens, token, "key");
          const lift = lifts.value?.[token] ?? 0;
          const byte = liftByte(lift, top);
          return [
            tokens.continues[token] ? null : " ",
            <span
              key={token}
              class="word"
              {...marks}
              data-read={(token >= first && token < end) || undefined}
              title={times(lift)}
              style={
                byte > 0
                  ? { background: rampCss(ramp.value, byte), color: textOn(rampColor(ramp.value, byte)) }
                  : undefined
              }
            >
              {text}
            </span>,
          ];
        })}
      </section>
      <Minimap
        colors={colors}
        height={height}
        window={[shown, near].map(share)}
        onGo={(part) => (looked.value = { sentence: chosen, token: Math.floor(part * tokens.labels.length) })}
        onDrawn={(canvas) => {
          if (store.shown.value) reportDrawn(canvas, store, store.shown.value);
        }}
      />
    </div>
  );
}

const MOST_LISTED = 8;

/** A bar of the longest, and its number. */
export function Listed({ part, number, void: hatched }: { part: number; number: string; void?: boolean }) {
  return (
    <>
      <span class={hatched ? "bar void" : "bar"} style={{ "--length": `${100 * part}%` }} />
      <span class="number">{number}</span>
    </>
  );
}

/** The sentences that the chosen one looks at most. */
export function SentenceCard({ store }: { store: Store }) {
  const stack = store.stack.value;
  const chosen = chosenSentence(store);
  const lifts = liftsOfSentence(store, chosen);
  const order = lifts ? [...lifts.keys()].sort((a, b) => lifts[b] - lifts[a]).slice(0, MOST_LISTED) : [];
  const listed = order.filter((sentence) => (lifts?.[sentence] ?? 0) > 0);
  return (
    <aside class="card pin-card" aria-label="Numbers" data-inspector style={{ "--kind": store.color.value }}>
      <strong data-chosen>Sentence {chosen + 1} looks at</strong>
      <p class="sentence">even: 1 × for every sentence that it sees</p>
      <ol class="token-list sentences stack">
        {listed.map((sentence) => (
          <li key={sentence} data-listed={sentence}>
            <button class="label" onClick={() => chooseSentence(store, chosen, sentence)}>
              {sentence + 1} <bdi>{sentenceName(stack, "key", sentence, 28)}</bdi>
            </button>
            <Listed
              part={(lifts?.[sentence] ?? 0) / (lifts?.[listed[0]] || 1)}
              number={times(lifts?.[sentence] ?? 0)}
            />
          </li>
        ))}
      </ol>
    </aside>
  );
}
