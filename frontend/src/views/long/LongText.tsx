import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { wordColors, wordRamp } from "../../draw/color";
import { paintMatrix } from "../../draw/thumbs";
import { largest, liftByte, topLift } from "../../draw/values";
import { density, Minimap, putPixels, useWidth } from "../../parts/canvas";
import { ARROWS } from "../../parts/controls";
import { Scale } from "../../parts/legend";
import { reportDrawn, type ViewParts } from "../../parts/mount";
import { tokenMarks } from "../../parts/tokens";
import { liftTicks } from "../../state/quantity";
import * as sentences from "../../state/sentences";
import type { Store } from "../../state/store";
import { directionOf, times } from "../../state/words";

/** Tokens that are elements at a time, and where each stands for a sentence. */
const [NEAR, NEAR_SENTENCES] = [280, 24];

/** A long text around one place, coloured by what the chosen sentence looks at, and the whole of it as a strip. */
export function LongText({ store, room }: ViewParts) {
  const box = useRef<HTMLElement>(null);
  const looked = useSignal<{ sentence: number; token: number } | null>(null);
  const lifts = useComputed(() => sentences.liftsOfTokens(store, sentences.chosenSentence(store)));
  const stack = store.stack.value;
  const { key: tokens } = stack;
  const chosen = sentences.chosenSentence(store);
  const [first, end] = sentences.boundsOf(stack, "query", chosen);
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
        class="text-scroll scrolls words slim relative"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard
        tabIndex={0}
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
              style={byte > 0 ? wordColors(ramp.value, byte) : undefined}
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
  const chosen = sentences.chosenSentence(store);
  const lifts = sentences.liftsOfSentence(store, chosen);
  const order = lifts ? [...lifts.keys()].sort((a, b) => lifts[b] - lifts[a]).slice(0, MOST_LISTED) : [];
  const listed = order.filter((sentence) => (lifts?.[sentence] ?? 0) > 0);
  return (
    <aside class="card pin-card" aria-label="Numbers" data-inspector style={{ "--kind": store.color.value }}>
      <strong data-chosen>Sentence {chosen + 1} looks at</strong>
      <p class="sentence">even: 1 × for every sentence that it sees</p>
      <ol class="token-list sentences stack">
        {listed.map((sentence) => (
          <li key={sentence} data-listed={sentence}>
            <button class="label left" onClick={() => sentences.chooseSentence(store, chosen, sentence)}>
              {sentence + 1} <bdi>{sentences.sentenceName(stack, "key", sentence, 28)}</bdi>
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

/** Width of the names of sentences, height of what stands below, and least distance of two names. */
const [NAMES, BELOW, LEAST] = [170, 64, 15];

/** One head of a long text: which sentence looks at which. */
export function SentenceMap({ store, room, plain = false, names }: ViewParts) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const pointed = useSignal<readonly [query: number, key: number] | null>(null);
  // Names would leave no room for the map of a small picture; of those in a row only the first has some.
  const beside = useComputed(() => (plain && width.value < 2 * NAMES ? 0 : NAMES));
  const named = names === "none" ? 0 : beside.value;
  const side = useComputed(() => Math.max(120, Math.min(width.value - beside.value - 8, room.value - BELOW)));
  const stack = store.stack.value;
  const { query: rows, key: columns } = stack.sentences ?? { query: [], key: [] };
  useSignalEffect(() => {
    const canvas = root.current?.querySelector("canvas");
    const [thumbs, shown, head] = [store.thumbs.value, store.shown.value, store.full.value];
    if (!canvas || !thumbs || head >= thumbs.heads || width.value === 0) return;
    const size = Math.round(side.value * density());
    const picture = { pixels: new Uint32Array(size * size), width: size };
    paintMatrix(picture, { head, left: 0, top: 0, size }, thumbs, store.ramp.value);
    putPixels(canvas, new Uint8ClampedArray(picture.pixels.buffer), { width: size, height: size });
    if (shown) reportDrawn(canvas, store, shown);
  });
  const chosen = sentences.chosenSentence(store);
  const at = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (point: number, count: number) => Math.max(0, Math.min(count - 1, Math.floor(point * count)));
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    return [part(y, rows.length), part(x, columns.length)] as const;
  };
  const [row, column] = pointed.value ?? [chosen, null];
  const every = Math.ceil(LEAST / (side.value / rows.length));
  const pitch = side.value / rows.length;
  return (
    <div class="sentence-map stack slim" ref={root} data-sentences={rows.length}>
      <div class="sentence-plane flex">
        <div
          class="sentence-names rigid muted relative"
          aria-hidden="true"
          style={{ width: `${named}px`, height: `${side.value}px` }}
        >
          {rows.map((_, sentence) =>
            (sentence % every === 0 && Math.abs(sentence - row) * pitch >= LEAST) || sentence === row ? (
              <span
                key={sentence}
                data-at={sentence === row || undefined}
                style={{ top: `${(sentence + 0.5) * pitch}px` }}
              >
                {sentence + 1} <bdi>{sentences.sentenceName(stack, "query", sentence, 24)}</bdi>
              </span>
            ) : null,
          )}
        </div>
        <div
          class="sentence-cells rigid relative"
          role="group"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows go from sentence to sentence here
          tabIndex={0}
          aria-label="Sentences: arrows choose one"
          style={{ width: `${side.value}px`, height: `${side.value}px` }}
          onPointerMove={(event) => (pointed.value = at(event))}
          onPointerLeave={() => (pointed.value = null)}
          onClick={(event) => sentences.chooseSentence(store, ...at(event))}
          onKeyDown={(event) => {
            const step = ARROWS[event.key]?.[0];
            if (!step) return;
            event.preventDefault();
            sentences.chooseSentence(store, Math.max(0, Math.min(rows.length - 1, chosen + step)));
          }}
        >
          <canvas data-canvas="sentences" />
          <span class="sentence-row" style={{ top: `${chosen * pitch}px`, height: `${pitch}px` }} />
        </div>
      </div>
      <p class="view-note muted" data-status aria-live="polite">
        {row + 1} “<bdi>{sentences.sentenceName(stack, "query", row)}</bdi>”
        {column === null
          ? ` is read${plain ? "" : ". Click a row to read what it looks at."}`
          : ` → ${column + 1} “${sentences.sentenceName(stack, "key", column)}”: ${times(sentences.liftsOfSentence(store, row)?.[column] ?? 0)} even`}
      </p>
      {!plain && (
        <Scale
          ramp={store.ramp.value}
          ticks={liftTicks(topLift(stack.key.labels.length))}
          label="times the even share"
        />
      )}
    </div>
  );
}
