import { useState } from "preact/hooks";
import type { WordPair } from "../../source/atlas";
import { bare, findAddress, percents, type Side } from "../../state/atlas";

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
    <section class="card atlas-card" aria-label="Frequent pairs">
      <h2>Between which words</h2>
      <div class="atlas-choices flex wrap">
        <label class="choice row muted">
          <input type="checkbox" checked={words} onChange={() => setWords(!words)} /> words only
        </label>
        <label class="choice row muted">
          <input
            type="checkbox"
            checked={order === "ratio"}
            onChange={() => setOrder(order === "share" ? "ratio" : "share")}
          />{" "}
          most above even first
        </label>
      </div>
      <table class="atlas-pairs">
        <thead>
          <tr>
            <th scope="col">from → to</th>
            <th scope="col">share</th>
            <th scope="col">even</th>
            <th scope="col">times</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((pair) => (
            <tr key={`${pair[0]} ${pair[1]}`}>
              <th scope="row">
                <a href={findAddress(bare(pair[0]), side)}>
                  <bdi>{pair[0]}</bdi>
                </a>{" "}
                →{" "}
                <a href={findAddress(bare(pair[1]), side)}>
                  <bdi>{pair[1]}</bdi>
                </a>
              </th>
              <td>{percents(pair[2])}</td>
              <td>{percents(pair[3])}</td>
              <td>{ratio(pair) > 0 ? `${ratio(pair).toFixed(1)} ×` : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > SHOWN && (
        <button type="button" class="quiet muted" onClick={() => setAll(!all)}>
          {all ? "fewer" : `all ${sorted.length}`}
        </button>
      )}
      <p class="fine">
        Share of all its attention in {texts.toLocaleString("en")} texts, at most; even: what a head would give that
        attends evenly to all keys of the same texts.
      </p>
    </section>
  );
}

function ratio([, , share, even]: WordPair): number {
  return even > 0 ? share / even : 0;
}
