import type { LiveGuess, LiveOutput, LivePlace } from "../../contract/live";
import { readable } from "../../state/label";
import { distance } from "../../state/moved";
import type { Store } from "../../state/store";
import type { LiveParts } from "./LiveBar";

/** More places than these are told one at a time. */
const MOST_PLACES = 2;

const TITLES: Readonly<Record<LiveOutput["kind"], string>> = {
  "next-token": "next token",
  masked: "hidden word",
  classes: "class",
  target: "next target token",
  none: "states of the tokens",
};

/** What the model says: the likeliest tokens or classes, before and after the changes. */
export function OutputPanel({ live, store }: LiveParts) {
  const { opening } = live.answer.value;
  const { output } = opening;
  const { untrained, mask } = live.facts;
  if (!output) return null;
  const places = placesShown(output, store);
  return (
    <section class="live-output" aria-label="What the model says" aria-live="polite" data-output={output.kind}>
      {places.map((place) => (
        <Place key={place.at} place={place} kind={output.kind} />
      ))}
      {output.kind === "masked" && places.length === 0 && (
        <p class="live-note">Write {mask} for a word, and the model guesses it.</p>
      )}
      {untrained && <p class="live-note">{untrained}</p>}
      {output.note && <p class="live-note">{output.note}</p>}
    </section>
  );
}

/** The place of the pinned token, or the last ones. */
export function placesShown({ places }: LiveOutput, store: Store): readonly LivePlace[] {
  const pinned = store.pins.value.query.map((token) => store.pieceAt({ side: "query", token }));
  const here = places.filter(({ at }) => pinned.includes(at));
  return here.length > 0 ? here.slice(0, MOST_PLACES) : places.slice(-(places.length > MOST_PLACES ? 1 : MOST_PLACES));
}

function Place({ place, kind }: { place: LivePlace; kind: LiveOutput["kind"] }) {
  const { at, token, before, after, kl } = place;
  const guesses = both(before, after);
  const most = Math.max(...guesses.flatMap(({ was, is }) => [was ?? 0, is ?? 0]), 1e-9);
  return (
    <div class="live-place-said" data-place={at}>
      <p class="live-title">
        <strong>{TITLES[kind]}</strong>
        {at >= 0 && (kind === "next-token" || kind === "masked" || kind === "target") && (
          <span>
            {kind === "masked" ? "at" : "after"} “<bdi>{readable(token, 24).text}</bdi>”
          </span>
        )}
        {kl !== undefined && (
          <span class="live-kl" data-kl title={klTitle(kind)}>
            {kind === "none" ? `moved ${distance(kl)}` : `moved ${distance(kl)} nats`}
          </span>
        )}
      </p>
      {guesses.length > 0 && (
        <ol class="live-guesses" data-changed={after !== undefined || undefined}>
          {guesses.map(({ guess, was, is }) => (
            <li key={guess.id} data-guess={guess.label}>
              <bdi class="label" title={guess.label}>
                {guess.continues ? "–" : ""}
                {readable(guess.label, 24).text}
              </bdi>
              <span class="live-bars" aria-hidden="true">
                <i style={{ "--part": (is ?? was ?? 0) / most }} />
                {after && <i class="was" style={{ "--part": (was ?? 0) / most }} />}
              </span>
              <span class="number">{chance(is ?? was)}</span>
              {after && <span class="number was">{was === undefined ? "was lower" : `was ${chance(was)}`}</span>}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

interface Both {
  readonly guess: LiveGuess;
  readonly was: number | undefined;
  readonly is: number | undefined;
}

/** What is guessed after a change or before it, the likeliest of now first. */
function both(before: readonly LiveGuess[], after: readonly LiveGuess[] | undefined): Both[] {
  if (!after) return before.map((guess) => ({ guess, was: guess.probability, is: undefined }));
  const was = new Map(before.map((guess) => [guess.id, guess.probability]));
  const is = new Map(after.map((guess) => [guess.id, guess.probability]));
  const gone = before.filter(({ id }) => !is.has(id)).slice(0, 2);
  return [...after, ...gone].map((guess) => ({ guess, was: was.get(guess.id), is: is.get(guess.id) ?? 0 }));
}

function klTitle(kind: LiveOutput["kind"]): string {
  return kind === "none"
    ? "Cosine distance of the states before and after"
    : "KL divergence of the output before from the output after, in nats";
}

/** "43 %", "4.8 %", "<0.1 %" */
export function chance(probability: number | undefined): string {
  if (probability === undefined) return "";
  const part = 100 * probability;
  if (part >= 9.95) return `${Math.round(part)} %`;
  return part >= 0.05 ? `${part.toFixed(1)} %` : "<0.1 %";
}
