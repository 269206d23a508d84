import { useState } from "preact/hooks";
import { Check } from "../../parts/Check";
import type { WordPair } from "../../source/atlas";
import { bare, findAddress, percents, type Side } from "../../state/atlas";
import { Card, Table } from "./parts";

const SHOWN = 12;

type Order = "share" | "ratio";

/** The pairs of words that most of a head's attention goes between. */
export function FrequentPairs({ pairs, texts, side = "" }: { pairs: readonly WordPair[]; texts: number; side?: Side }) {
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
          percents(pair[2]),
          percents(pair[3]),
          ratio(pair) > 0 ? `${ratio(pair).toFixed(1)} ×` : "–",
        ])}
      />
      {sorted.length > SHOWN && (
        <button type="button" class="quiet muted" onClick={() => setAll(!all)}>
          {all ? "fewer" : `all ${sorted.length}`}
        </button>
      )}
      <p class="fine">
        Share of all its attention in {texts.toLocaleString("en")} texts, at most; even: what a head would give that
        attends evenly to all keys of the same texts.
      </p>
    </Card>
  );
}

function Word({ word, side }: { word: string; side: Side }) {
  return (
    <a href={findAddress(bare(word), side)}>
      <bdi>{word}</bdi>
    </a>
  );
}

function ratio([, , share, even]: WordPair): number {
  return even > 0 ? share / even : 0;
}
