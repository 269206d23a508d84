import { useState } from "preact/hooks";
import type { AtlasHead, AtlasText } from "../../source/atlas";
import { bare, headAddress, LINKS, percents, shortShare, WORD_LINKS } from "../../state/atlas";
import { bothOn, ExampleWords, LinkColumns } from "./ExampleWords";
import { type AtlasView, placeOf, Tile } from "./parts";

interface TextPageProps {
  view: AtlasView;
  head: AtlasHead;
  number: number;
  text: AtlasText;
}

/** A whole text as one head sees it: its words, and the strongest links between two columns of them. */
export function TextPage({ view, head, number, text }: TextPageProps) {
  const [from, setFrom] = useState<number | null>(null);
  const links = bothOn(head, number);
  const mass = links.reduce((sum, { weight }) => sum + weight, 0) / text.words.length;
  return (
    <div class="atlas-page atlas-text">
      <section class="card atlas-card" aria-label="Text">
        <h2>
          A text of the sample{" "}
          <small>
            {head.score} {shortShare(head.scores[number])}
          </small>
        </h2>
        <p class="atlas-whole">
          <ExampleWords view={view} said={head} number={number} text={text} from={from} />
        </p>
        <p class="fine">
          Kept are the {LINKS} strongest links of the text and the {WORD_LINKS} strongest between words: here{" "}
          {percents(mass)} of the head's attention. What is not drawn was not kept; it need not be 0. Point at a word on
          the left for its links.
        </p>
        <p>
          <a class="quiet" href={headAddress(head.layer, head.head, undefined, view.side)}>
            ← Head {head.layer}-{head.head}
          </a>
        </p>
        <h3>The same text in heads alike</h3>
        <div class="atlas-neighbours">
          {head.neighbours.slice(0, 4).map(([layer, other, alike]) => (
            <Tile
              key={`${layer}-${other}`}
              view={view}
              at={placeOf(view.index, layer, other)}
              note={shortShare(alike)}
              text={number}
              named
            />
          ))}
        </div>
      </section>
      <section class="card atlas-card" aria-label="Links">
        <h2>Strongest links</h2>
        <LinkColumns
          names={text.words.map(bare)}
          links={links}
          from={from}
          setFrom={setFrom}
          label={`${links.length} links; the strongest from ${bare(text.words[links[0]?.query ?? 0])} to ${bare(text.words[links[0]?.key ?? 0])}`}
          number={shortShare}
        />
      </section>
    </div>
  );
}
