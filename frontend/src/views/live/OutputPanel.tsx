import { useSignal } from "@preact/signals";
import type { LensLayer, LiveGuess, LiveOutput, LivePlace } from "../../../types/live";
import { Quiet } from "../../parts/controls";
import { messageOf } from "../../source/source";
import { distance } from "../../state/evidence";
import type { Live } from "../../state/live";
import type { Store } from "../../state/store";
import { chance, readable } from "../../state/words";
import type { LiveParts } from "./LiveBar";
import { WhyButton } from "./Why";
import { LensLayers } from "./Writing";

/** More places than these are told one at a time. */
const MOST_PLACES = 2;

const TITLES: Readonly<Record<LiveOutput["kind"], string>> = {
  "next-token": "next token",
  masked: "hidden word",
  classes: "class",
  target: "next target token",
  none: "states of the tokens",
};

const KL_TITLES = {
  states: "Cosine distance of the states before and after",
  output: "Difference of the output before and after",
  guesses: "KL divergence of the output before from the output after, in nats",
} as const;

/** What the model says: the likeliest tokens or classes, before and after the changes. */
export function OutputPanel({ live, store }: LiveParts) {
  const { opening } = live.answer.value;
  const { output } = opening;
  const { untrained, mask } = live.facts;
  if (!output) return null;
  const places = placesShown(output, store);
  return (
    <section
      class="live-output stack slim"
      aria-label="What the model says"
      aria-live="polite"
      data-output={output.kind}
    >
      {places.map((place) => (
        <Place key={place.at} place={place} kind={output.kind} live={live} />
      ))}
      {output.kind === "masked" && places.length === 0 && (
        <p class="live-note muted">Write {mask} for a word, and the model guesses it.</p>
      )}
      {untrained && <p class="live-note muted">{untrained}</p>}
      {output.note && <p class="live-note muted">{output.note}</p>}
    </section>
  );
}

/** The place of the pinned token; without one the last ones, of classes the one that moved most. */
export function placesShown({ kind, places }: LiveOutput, store: Store): readonly LivePlace[] {
  const pinned = store.pins.value.query.map((token) => store.pieceAt({ side: "query", token }));
  const here = places.filter(({ at }) => pinned.includes(at));
  if (here.length === 0 && kind === "classes") return [...places].sort((a, b) => (b.kl ?? 0) - (a.kl ?? 0)).slice(0, 1);
  return here.length > 0 ? here.slice(0, MOST_PLACES) : places.slice(-(places.length > MOST_PLACES ? 1 : MOST_PLACES));
}

function Place({ place, kind, live }: { place: LivePlace; kind: LiveOutput["kind"]; live: Live }) {
  const { at, token, before, after, kl } = place;
  const guesses = both(before, after);
  const { text, image, audio } = live.answer.value.asked.input;
  const canBranch = kind === "next-token" && live.facts.writes && text !== undefined && !image && !audio;
  const most = Math.max(...guesses.flatMap(({ was, is }) => [was ?? 0, is ?? 0]), 1e-9);
  return (
    <div class="live-place-said" data-place={at}>
      <p class="live-title muted flex wrap">
        <strong>{TITLES[kind]}</strong>
        {at >= 0 && kind !== "none" && (
          <span>
            {kind === "masked" ? "at" : kind === "classes" ? "of" : "after"} “<bdi>{readable(token, 24).text}</bdi>”
          </span>
        )}
        {kl !== undefined && (
          <span
            class="live-kl"
            data-kl
            title={KL_TITLES[kind === "none" ? "states" : guesses.length > 0 ? "guesses" : "output"]}
          >
            {kind === "none" || guesses.length === 0 ? `moved ${distance(kl)}` : `moved ${distance(kl)} nats`}
          </span>
        )}
      </p>
      {guesses.length > 0 && (
        <ol class="live-guesses" data-changed={after !== undefined || undefined}>
          {guesses.map(({ guess, was, is }) => (
            <li key={guess.id} class="stack middle" data-guess={guess.label}>
              {canBranch ? (
                <button
                  class="label"
                  data-branch={guess.id}
                  title={`Go on from “${guess.label}”`}
                  onClick={() => (live.branch.value = { at, choice: guess, guesses: after ?? before })}
                >
                  <GuessLabel guess={guess} />
                </button>
              ) : (
                <GuessLabel guess={guess} />
              )}
              <span class="live-bars stack" aria-hidden="true">
                <i style={{ "--part": (is ?? was ?? 0) / most }} />
                {after && <i class="was" style={{ "--part": (was ?? 0) / most }} />}
              </span>
              <span class="number">{chance(is ?? was)}</span>
              {after && <span class="number was">{was === undefined ? "was lower" : `was ${chance(was)}`}</span>}
              {live.facts.lens && <WhyButton live={live} at={at} id={guess.id} label={guess.label} />}
            </li>
          ))}
        </ol>
      )}
      {live.facts.lens && guesses.length > 0 && <ByLayer at={at} live={live} />}
    </div>
  );
}

function GuessLabel({ guess }: { guess: LiveGuess }) {
  return (
    <bdi class="label" title={guess.label}>
      {guess.continues ? "–" : ""}
      {readable(guess.label, 24).text}
    </bdi>
  );
}

/** On request what each layer would say at this place, of what is shown now. */
function ByLayer({ at, live }: { at: number; live: Live }) {
  const [shown, problem] = [useSignal<{ of: object; layers: readonly LensLayer[] } | null>(null), useSignal("")];
  const answer = live.answer.value;
  const layers = shown.value?.of === answer ? shown.value.layers : null;
  const ask = async () => {
    problem.value = "";
    if (layers) {
      shown.value = null;
      return;
    }
    const { input, changes } = answer.asked;
    try {
      shown.value = { of: answer, layers: (await live.model.lens({ input, changes: [...changes], at })).layers };
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <>
      <Quiet
        data-by-layer
        aria-expanded={layers !== null}
        title="What the model would say were it to end after each layer (logit lens)"
        onClick={() => void ask()}
      >
        by layer
      </Quiet>{" "}
      <small role="alert">{problem.value}</small>
      {layers && <LensLayers layers={layers} />}
    </>
  );
}

/** What is guessed after a change or before it, the likeliest of now first. */
function both(before: readonly LiveGuess[], after: readonly LiveGuess[] | undefined) {
  if (!after) return before.map((guess) => ({ guess, was: guess.probability, is: undefined }));
  const was = new Map(before.map((guess) => [guess.id, guess.probability]));
  const is = new Map(after.map((guess) => [guess.id, guess.probability]));
  const gone = before.filter(({ id }) => !is.has(id)).slice(0, 2);
  return [...after, ...gone].map((guess) => ({ guess, was: was.get(guess.id), is: is.get(guess.id) ?? 0 }));
}
