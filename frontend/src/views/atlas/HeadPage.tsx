import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { kindColor } from "../../draw/kinds";
import { Check, Quiet } from "../../parts/controls";
import { LabelSection, Rest } from "../../parts/evidence";
import type { AtlasEvidence, AtlasHead, AtlasIndex, AtlasText, Shares, WordPair } from "../../source/atlas";
import * as atlas from "../../state/atlas";
import { count, counted } from "../../state/words";
import {
  type AtlasView,
  Bars,
  besideHead,
  Card,
  Heading,
  Histogram,
  LabelChip,
  MeanMap,
  placeOf,
  Table,
  Tile,
  useLoaded,
} from "./parts";
import { Strata, TextPage } from "./Texts";
import { TreeHeadParts } from "./TreeHead";

/** Everything that is known of one head; or one text as it sees it. */
export function HeadPage({ view, place }: { view: AtlasView; place: atlas.AtlasPlace }) {
  const [layer, number] = place.head ?? [0, 0];
  const { said, texts, failure } = useHead(view, layer, number);
  const at = placeOf(view.index, layer, number);
  const tile = view.index.heads[at];
  const beside = [at - 1, at + 1].map((other) => view.index.heads[other]);
  const places = beside.map((other) => other && ([other.layer, other.head] as const));
  return (
    <>
      <Heading
        {...besideHead(place, places, place.text ?? undefined)}
        title={`Head ${layer}-${number}`}
        failure={failure}
      >
        <span class="label-chips flex wrap">
          {tile?.labels.map(({ name, score, holds }) => (
            <LabelChip
              key={name}
              name={name}
              dark={view.dark}
              note={`${atlas.shortShare(score)}${holds ? "" : " candidate"}`}
            />
          ))}
          {tile?.labels.length === 0 && !said?.tree && <span class="facts muted">no label</span>}
        </span>
        <span class="facts muted">{view.index.model}</span>
      </Heading>
      {said?.tree && <TreeHeadParts view={view} place={place} at={at} said={said.tree} />}
      {said && texts && place.text !== null && texts[place.text] && (
        <SampleText view={view} head={said} number={place.text} text={texts[place.text]} />
      )}
      {said && !said.tree && texts && place.text === null && (
        <Everything view={view} at={at} said={said} texts={texts} />
      )}
    </>
  );
}

type SampleTextProps = { view: AtlasView; head: AtlasHead; number: number; text: AtlasText };

/** A whole text of the sample, and the same in heads that are alike. */
function SampleText({ view, head, number, text }: SampleTextProps) {
  const shown = atlas.shownText(head, number, text);
  const mass = shown.links.reduce((sum, { weight }) => sum + weight, 0) / text.words.length;
  return (
    <TextPage
      dark={view.dark}
      text={shown}
      title="A text of the sample"
      score={`${head.score} ${atlas.shortShare(head.scores[number])}`}
      kept={`Kept are the ${atlas.LINKS} strongest links of the text and the ${atlas.WORD_LINKS} strongest between words: here ${atlas.percents(mass)} of the head's attention.`}
      head={[head.layer, head.head, view.side]}
    >
      <h3>The same text in heads alike</h3>
      <Neighbours view={view} head={head} most={4} text={number} />
    </TextPage>
  );
}

function Neighbours({ view, head, most, text }: { view: AtlasView; head: AtlasHead; most?: number; text?: number }) {
  return (
    <div class="atlas-neighbours stack">
      {head.neighbours.slice(0, most).map(([layer, other, alike]) => (
        <Tile
          key={`${layer}-${other}`}
          view={view}
          at={placeOf(view.index, layer, other)}
          note={atlas.shortShare(alike)}
          {...(text !== undefined && { text })}
          named
        />
      ))}
    </div>
  );
}

type EverythingProps = { view: AtlasView; at: number; said: AtlasHead; texts: readonly AtlasText[] };

function Everything({ view, at, said, texts }: EverythingProps) {
  return (
    <div class="atlas-page stack top">
      <Everywhere view={view} at={at} said={said} />
      <Card label="Labels" title="Labels, with their evidence">
        <Labels view={view} labels={said.labels} />
      </Card>
      <FrequentPairs pairs={said.pairs} texts={view.index.texts} side={view.side} />
      <Card label="Neighbours" title="Heads most alike">
        <Neighbours view={view} head={said} />
        <p class="fine">
          1 where every query attends alike in both heads, 0 where they share no key; mean over all queries.
        </p>
      </Card>
      <Examples view={view} said={said} texts={texts} />
    </div>
  );
}

/** The patterns that were looked for: those that hold in full, the others in a line each. */
function Labels({ view, labels }: { view: AtlasView; labels: readonly AtlasEvidence[] }) {
  const told = labels.filter(({ holds, candidate }) => holds || candidate);
  const rest = labels.filter(({ holds, candidate }) => !(holds || candidate));
  return (
    <>
      {told.length === 0 && <p class="fine">It holds none of the {labels.length} patterns that were looked for.</p>}
      {told.map((label) => (
        <LabelSection
          key={label.name}
          label={label}
          dark={view.dark}
          says={view.index.patterns.find(({ name }) => name === label.name)?.says}
          against={label.against}
          caution={label.candidate ? "a candidate: too few texts to tell it from chance" : ""}
          sure={`${count(label.texts)} ${label.on}`}
        />
      ))}
      <Rest labels={rest} />
    </>
  );
}

export function useHead({ source }: AtlasView, layer: number, head: number) {
  const [said, failure] = useLoaded(() => source.read<AtlasHead>(`head-${layer}-${head}`), [source, layer, head]);
  const [texts, noTexts] = useLoaded(() => source.read<readonly AtlasText[]>("texts"), [source]);
  return { said, texts, failure: failure || noTexts };
}

const NAMES = ["lowest fifth", "second fifth", "middle fifth", "fourth fifth", "highest fifth"];

/** Texts of five strata of the head's score, the highest first. */
function Examples({ view, said, texts }: { view: AtlasView; said: AtlasHead; texts: readonly AtlasText[] }) {
  const fifths = [...said.strata].reverse();
  const bins = said.spread.length;
  const by = said.score === "confidence" ? "confidence (the largest weight of a query)" : said.score;
  const odd = (bin: number) =>
    said.strata.findIndex(({ low, high }) => bin / bins >= low && bin / bins < high) % 2 === 1;
  return (
    <Strata
      dark={view.dark}
      color={kindColor(atlas.kindOfTile(said), view.dark)}
      title={`Examples, from high to low ${by}`}
      strata={fifths.map((fifth, at) => ({
        name: `${fifths.length === 5 ? `${NAMES[4 - at]}: ` : ""}${atlas.shortShare(fifth.low)} to ${atlas.shortShare(fifth.high)}`,
        count: counted(fifth.texts, "text"),
        texts: fifth.examples.map((number) => ({
          href: atlas.headAddress(said.layer, said.head, number, view.side),
          text: atlas.shownText(said, number, texts[number]),
          score: atlas.shortShare(said.scores[number]),
        })),
      }))}
      note={`Four texts of each fifth, drawn evenly from a sample of ${texts.length} that is the same for all heads; fifths are of all ${count(view.index.texts)} texts${fifths.length < 5 ? ", and fall together where many score alike" : ""}.`}
    >
      <Histogram
        plot={{
          label: `texts by ${said.score}`,
          description: "shades tell fifths",
          edges: said.spread.map((_, bin) => bin / bins).concat(1),
          values: said.spread,
        }}
        odd={odd}
      />
    </Strata>
  );
}

/** Where the attention of a head goes: its mean map, by distance, by what a key is. */
function Everywhere({ view, at, said }: { view: AtlasView; at: number; said: AtlasHead }) {
  const { index, dark } = view;
  const of = sharesOf(index, said);
  const hasNorms = Object.keys(said.norms).length > 0;
  return (
    <Where
      title="Where its attention goes"
      color={kindColor(atlas.kindOfTile(index.heads[at]), dark)}
      index={index}
      maps={
        <figure>
          <MeanMap
            view={view}
            at={at}
            label={`Mean attention of the first ${index.side} and last ${index.side} tokens`}
          />
          <figcaption>
            mean map: first {index.side} and last {index.side} tokens; rows look
          </figcaption>
        </figure>
      }
      shares={said.distance}
      said={(name, share, even) => `${name}: ${atlas.percents(share)} (even ${atlas.percents(even)})`}
      line="even attention"
      kinds={`what it looks at${hasNorms ? "; of norms: share of the lengths of what it adds, attention times ‖f(x)‖" : ""}`}
      names={[...Object.keys(said.relations), ...index.classes]}
      columns={[
        { title: "share", share: (name) => of(name)[0], isBar: true },
        { title: "even", share: (name) => of(name)[1] },
        ...(hasNorms ? [{ title: "of norms", share: (name: string) => said.norms[name] ?? 0 }] : []),
      ]}
    />
  );
}

/** Share of the attention of a head, and of even attention, that goes to tokens of a class or a relation. */
export function sharesOf({ classes }: AtlasIndex, { relations, keys, evenKeys }: AtlasHead): (name: string) => Shares {
  return (name) => {
    const at = classes.indexOf(name);
    return relations[name] ?? [keys[at] ?? 0, evenKeys[at] ?? 0];
  };
}

interface WhereProps {
  title: string;
  color: string;
  index: AtlasIndex;
  maps: ComponentChildren;
  /** At each distance the share of the bar, and that of the line. */
  shares: readonly (readonly [bar: number, line: number, ...more: number[]])[];
  said: (distance: string, bar: number, line: number) => string;
  /** What the line is. */
  line: ComponentChildren;
  /** What the table says, of what, and its columns. */
  kinds: string;
  names: readonly string[];
  columns: readonly {
    readonly title: ComponentChildren;
    readonly share: (name: string) => number;
    readonly isBar?: boolean;
    readonly color?: string;
  }[];
}

/** Where attention goes: as mean maps, by distance, by what a key is; of one head or of two. */
export function Where({ title, color, index, maps, shares, said, line, kinds, names, columns }: WhereProps) {
  const there = [...shares.keys()].filter((at) => shares[at][0] + shares[at][1] > 0.0005);
  const [first, last] = [there[0] ?? 0, there.at(-1) ?? 0];
  const shown = shares.slice(first, last + 1);
  const itself = (index.distances.length - 1) / 2;
  const saidOf = (bar: number) => said(index.distances[first + bar], shown[bar][0], shown[bar][1]);
  const top = shown.reduce((best, [bar], at) => (bar > shown[best][0] ? at : best), 0);
  return (
    <Card class="atlas-where" label={title} title={title} color={color}>
      <div class="atlas-where-body stack top">
        <div class="atlas-means stack">{maps}</div>
        <Bars
          label={`Attention by distance; most ${saidOf(top)}`}
          values={shown.map(([bar]) => bar)}
          line={shown.map(([, of]) => of)}
          said={saidOf}
          // Heads that see nothing after themselves have no room for it, and no use.
          ticks={[
            [0, "← before"],
            [itself - first + 0.5, "itself"],
            ...(last - itself > 2 ? [[shown.length, "after →"] as const] : []),
          ]}
        >
          by distance in tokens, farther ones pooled; most {saidOf(top)}; line: {line}
        </Bars>
        <Table
          class="atlas-kinds"
          caption={kinds}
          head={["key", ...columns.map((column) => column.title)]}
          rows={names.map((name) => [
            RELATION_WORDS[name] ?? CLASS_WORDS[name] ?? name,
            ...columns.map(({ share, isBar, color: bar }) => {
              const text = atlas.percents(share(name));
              return isBar ? { text, part: share(name), ...(bar && { color: bar }) } : text;
            }),
          ])}
        />
      </div>
    </Card>
  );
}

const RELATION_WORDS: Readonly<Record<string, string>> = {
  itself: "the token itself",
  previous: "the token before",
  next: "the token after",
  "same word": "the same word elsewhere",
  "own word": "the rest of its word",
};
const CLASS_WORDS: Readonly<Record<string, string>> = {
  first: "the first token",
  special: "other special tokens",
  number: "numbers",
  word: "words",
  "rest of a word": "later pieces of words",
};

const SHOWN = 12;

type Order = "share" | "ratio";

/** The pairs of words that most of a head's attention goes between. */
export function FrequentPairs({
  pairs,
  texts,
  side = "",
}: {
  pairs: readonly WordPair[];
  texts: number;
  side?: atlas.Side;
}) {
  const [words, setWords] = useState(true);
  const [order, setOrder] = useState<Order>("share");
  const [all, setAll] = useState(false);
  const chosen = pairs.filter(([, , , , isWords]) => isWords || !words);
  const sorted = order === "share" ? chosen : [...chosen].sort((one, other) => ratio(other) - ratio(one));
  const shown = all ? sorted : sorted.slice(0, SHOWN);
  return (
    <Card label="Frequent pairs" title="Between which words">
      <div class="atlas-choices flex wrap">
        <Check name="data-words-only" checked={words} label="words only" onChange={setWords} />
        <Check
          name="data-by-ratio"
          checked={order === "ratio"}
          label="most above even first"
          onChange={(byRatio) => setOrder(byRatio ? "ratio" : "share")}
        />
      </div>
      <Table
        class="atlas-pairs"
        head={["from → to", "share", "even", "times"]}
        rows={shown.map((pair) => [
          <>
            <Word word={pair[0]} side={side} /> → <Word word={pair[1]} side={side} />
          </>,
          atlas.percents(pair[2]),
          atlas.percents(pair[3]),
          ratio(pair) > 0 ? `${ratio(pair).toFixed(1)} ×` : "–",
        ])}
      />
      {sorted.length > SHOWN && (
        <Quiet type="button" onClick={() => setAll(!all)}>
          {all ? "fewer" : `all ${sorted.length}`}
        </Quiet>
      )}
      <p class="fine">
        Share of all its attention in {texts.toLocaleString("en")} texts, at most; even: what a head would give that
        attends evenly to all keys of the same texts.
      </p>
    </Card>
  );
}

function Word({ word, side }: { word: string; side: atlas.Side }) {
  return (
    <a href={atlas.findAddress(atlas.bare(word), side)}>
      <bdi>{word}</bdi>
    </a>
  );
}

function ratio([, , share, even]: WordPair): number {
  return even > 0 ? share / even : 0;
}
