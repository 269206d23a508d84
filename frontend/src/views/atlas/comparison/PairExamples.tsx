import type { AtlasHead, AtlasText } from "../../../source/atlas";
import { headAddress, shortShare } from "../../../state/atlas";
import { ExampleWords, MiniLines } from "../ExampleWords";
import type { AtlasView } from "../parts";
import type { ComparisonView } from "./view";

const SHOWN = 4;

interface OneSide {
  /** What its atlas is called. */
  name: string;
  view: AtlasView;
  said: AtlasHead;
  texts: readonly AtlasText[];
}

/** Texts on which the heads score high: the same in both, where both samples hold the same. */
export function PairExamples({ view: { index }, a, b }: { view: ComparisonView; a: OneSide; b: OneSide }) {
  const together = index.sameTexts ? [...new Set([...highest(a), ...highest(b)])] : [];
  return (
    <section class="card atlas-card atlas-examples" aria-label="Examples">
      <h2>{index.sameTexts ? "The same texts in both heads" : "Texts on which each head scores high"}</h2>
      <div class="twin-examples">
        {[a, b].map(({ name, view }) => (
          <p key={view.side} class="twin-name">
            <bdi>{name}</bdi>
          </p>
        ))}
        {index.sameTexts
          ? together.map((number) => [
              <Example key={`a${number}`} of={a} number={number} />,
              <Example key={`b${number}`} of={b} number={number} />,
            ])
          : Array.from({ length: SHOWN }, (_, at) => [
              <Example key={`a${at}`} of={a} number={highest(a)[at]} />,
              <Example key={`b${at}`} of={b} number={highest(b)[at]} />,
            ])}
      </div>
      <p class="fine">
        {index.sameTexts
          ? `Up to ${SHOWN} texts of the highest fifth of either head`
          : `${SHOWN} texts of its highest fifth`}
        , by {a.said.score} and {b.said.score}. Words: the darker, the more of the strongest links end there; the
        strongest link between words is marked. A click opens the text.
      </p>
    </section>
  );
}

function highest({ said }: OneSide): readonly number[] {
  return said.strata.at(-1)?.examples.slice(0, SHOWN) ?? [];
}

function Example({ of: { name, view, said, texts }, number }: { of: OneSide; number: number | undefined }) {
  if (number === undefined || !texts[number]) return <span />;
  return (
    <a class="atlas-example" href={headAddress(said.layer, said.head, number, view.side)}>
      <small class="twin-narrow">
        <bdi>{name}</bdi>
      </small>
      <span class="atlas-example-score number">{shortShare(said.scores[number])}</span>
      <MiniLines view={view} said={said} number={number} text={texts[number]} />
      <ExampleWords view={view} said={said} number={number} text={texts[number]} />
    </a>
  );
}
