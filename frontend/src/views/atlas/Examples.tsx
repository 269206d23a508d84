import type { AtlasHead, AtlasStratum, AtlasText } from "../../source/atlas";
import { headAddress, shortShare } from "../../state/atlas";
import { counted } from "../../state/words";
import { ExampleWords, MiniLines } from "./ExampleWords";
import type { AtlasView } from "./parts";

const NAMES = ["lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth"];

interface ExamplesProps {
  view: AtlasView;
  said: AtlasHead;
  texts: readonly AtlasText[];
}

/** Texts of five strata of the head's score, the highest first. */
export function Examples({ view, said, texts }: ExamplesProps) {
  const strata = [...said.strata].reverse();
  return (
    <section class="card atlas-card atlas-examples" aria-label="Examples">
      <h2>
        Examples, from high to low{" "}
        {said.score === "confidence" ? "confidence (the largest weight of a query)" : said.score}
      </h2>
      <Spread said={said} />
      {strata.map((stratum) => (
        <section key={stratum.low} class="atlas-stratum" aria-label={range(stratum)}>
          <h3>
            {strata.length === 5 && `${NAMES[4 - strata.indexOf(stratum)]}: `}
            {range(stratum)} <small>{counted(stratum.texts, "text")}</small>
          </h3>
          <ul>
            {stratum.examples.map((number) => (
              <li key={number}>
                <a class="atlas-example" href={headAddress(said.layer, said.head, number, view.side)}>
                  <span class="atlas-example-score number">{shortShare(said.scores[number])}</span>
                  <MiniLines view={view} said={said} number={number} text={texts[number]} />
                  <ExampleWords view={view} said={said} number={number} text={texts[number]} />
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <p class="fine">
        Four texts of each fifth, drawn evenly from a sample of {texts.length} that is the same for all heads; fifths
        are of all {view.index.texts.toLocaleString("en")} texts
        {strata.length < 5 && ", and fall together where many score alike"}. Words: the darker, the more of the
        strongest links end there; the strongest link between words is marked. A click opens the text.
      </p>
    </section>
  );
}

function range({ low, high }: AtlasStratum): string {
  return `${shortShare(low)} to ${shortShare(high)}`;
}

/** How many texts have which score. */
function Spread({ said: { spread, strata, score } }: { said: AtlasHead }) {
  const most = Math.max(1, ...spread);
  const bins = spread.length;
  const fifthOf = (bin: number) => strata.findIndex(({ low, high }) => bin / bins >= low && bin / bins < high);
  return (
    <svg class="atlas-spread" viewBox={`0 0 ${4 * bins} 62`} role="img" aria-label={`Texts by ${score}, from 0 to 1`}>
      {spread.map((count, bin) => (
        <rect
          key={bin}
          x={4 * bin}
          y={48 - (46 * count) / most}
          width={3.4}
          height={(46 * count) / most}
          data-odd={fifthOf(bin) % 2 === 1 || undefined}
        />
      ))}
      <path d={`M0 48.5H${4 * bins}`} />
      {[0, 0.25, 0.5, 0.75, 1].map((tick) => (
        <text key={tick} x={4 * bins * tick} y={60} text-anchor={tick === 0 ? "start" : tick === 1 ? "end" : "middle"}>
          {shortShare(tick)}
        </text>
      ))}
    </svg>
  );
}
