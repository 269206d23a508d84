import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { PageGeneration } from "../../../types/page";
import { largest } from "../../draw/values";
import { walkTiles } from "../../parts/controls";
import type { Store } from "../../state/store";
import { counted, percent, readable } from "../../state/words";

/** Tokens that have elements; of longer texts those around the step. */
const MOST = 400;

/** What the model wrote, token by token: probability, entropy, rank, and what it might have written instead. */
export function Written({ store, written }: { store: Store; written: PageGeneration }) {
  const pointed = useSignal<number | null>(null);
  const root = useRef<HTMLOListElement>(null);
  const { labels, prompt } = written;
  const here = store.stack.value.query.written === prompt;
  const pin = store.pins.value.query[0];
  // The query before a token chose it.
  const step = here && pin !== undefined && pin >= prompt - 1 ? pin - prompt + 1 : null;
  const go = (to: number) => {
    if (here && to >= 0 && to < labels.length) store.choose({ query: [prompt + to - 1], key: [] });
  };
  useEffect(() => {
    const list = root.current;
    const chosen = step === null ? null : list?.querySelector<HTMLElement>(`[data-step="${step}"]`);
    if (list && chosen) list.scrollLeft = chosen.offsetLeft - list.clientWidth / 2;
  }, [step]);
  const point = (at: number | null) => {
    pointed.value = at;
    if (here && !store.merged.value) store.preview(at === null ? {} : { query: prompt + at - 1 });
  };
  const most = largest(written.entropies) || 1;
  const first = Math.max(0, Math.min(labels.length - MOST, (step ?? 0) - MOST / 2));
  return (
    <section class="card written" aria-label="What the model wrote" data-written>
      <p class="written-told row muted">
        <span aria-live="polite" data-written-told>
          <Told written={written} at={pointed.value ?? step} />
        </span>
      </p>
      <ol
        class="flex relative"
        ref={root}
        onPointerLeave={() => point(null)}
        onKeyDown={(event) => walkTiles(event, MOST, "[data-step]")}
      >
        {labels.slice(first, first + MOST).map((label, number) => {
          const at = first + number;
          const { text, standIn } = readable(label, 24);
          return (
            <li key={at} class="rigid">
              <button
                class="stack"
                data-step={at}
                aria-pressed={at === step}
                aria-label={`${text}, written token ${at}, probability ${percent(written.probabilities[at])}`}
                style={{ "--p": written.probabilities[at], "--h": written.entropies[at] / most }}
                onPointerEnter={() => point(at)}
                onFocus={() => point(at)}
                onBlur={() => point(null)}
                onClick={() => go(at)}
              >
                <i />
                <i />
                <bdi class="label" data-stand-in={standIn || undefined}>
                  {text}
                </bdi>
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** One written token in words; all of them where none is looked at. */
function Told({ written, at }: { written: PageGeneration; at: number | null }) {
  const { labels, probabilities, entropies, ranks, alternatives, prompt } = written;
  if (at === null) {
    return (
      <>
        <strong>{counted(labels.length, "token")} written</strong> after {prompt} given · bars: probability, and entropy
        below · point at one, or click to see what it was chosen by
      </>
    );
  }
  return (
    <>
      <strong>
        <bdi>{readable(labels[at], 24).text}</bdi>
      </strong>{" "}
      {percent(probabilities[at])} · rank {ranks[at]} · entropy {entropies[at].toFixed(2)} nats
      {alternatives[at].length > 0 && " · candidates: "}
      {alternatives[at].map(({ label, probability }, place) => (
        <span key={place} class="candidate">
          <bdi>{readable(label, 24).text}</bdi> {percent(probability)}
        </span>
      ))}
    </>
  );
}
