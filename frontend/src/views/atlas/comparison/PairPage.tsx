import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Mark } from "../../../parts/Mark";
import { headAddress, shortShare } from "../../../state/atlas";
import { type ComparedSide, headName, pairAddress } from "../../../state/atlasComparison";
import { FrequentPairs } from "../FrequentPairs";
import { useHead } from "../HeadPage";
import { Changes } from "./Changes";
import { PairExamples } from "./PairExamples";
import { PairWhere } from "./PairWhere";
import type { ComparisonView } from "./view";

const SIDES: readonly ComparedSide[] = ["a", "b"];

/** Both heads of a pair: where their attention goes, their scores, words and examples. */
export function PairPage({ view, number }: { view: ComparisonView; number: number }) {
  const { index } = view;
  const pair = index.pairs[number];
  const heads = { a: index.a.heads[pair.a], b: index.b.heads[pair.b] };
  const a = useHead(view.a, heads.a.layer, heads.a.head);
  const b = useHead(view.b, heads.b.layer, heads.b.head);
  const failure = a.failure || b.failure;
  return (
    <>
      <header class="atlas-head">
        <PairNav view={view} number={number} />
        <h1 tabIndex={-1}>
          Head {headName(index, "a", pair.a)} → {headName(index, "b", pair.b)}
        </h1>
        <span class="label-chips">
          {[...pair.lost, ...pair.gained].map((name) => (
            <span class="label-chip" key={name}>
              <Mark shape={view.a.marks.get(name) ?? view.b.marks.get(name)} />
              <bdi>{name}</bdi> <small>{pair.lost.includes(name) ? "lost" : "gained"}</small>
            </span>
          ))}
        </span>
        <span class="facts">
          {SIDES.map((side, at) => (
            <a key={side} class="quiet" href={headAddress(heads[side].layer, heads[side].head, undefined, side)}>
              <bdi>{index.names[at]}</bdi> {headName(index, side, pair[side])} alone
            </a>
          ))}
        </span>
      </header>
      {failure && (
        <p class="caution" role="alert">
          {failure}
        </p>
      )}
      <div class="atlas-page twin-page">
        {a.said && b.said && <PairWhere view={view} pair={pair} a={a.said} b={b.said} />}
        <Changes view={view} pair={number} />
        <Similarity view={view} number={number} />
        {a.said && b.said && (
          <div class="twin-words">
            <SideTitle name={index.names[0]}>
              <FrequentPairs pairs={a.said.pairs} texts={index.a.texts} side="a" />
            </SideTitle>
            <SideTitle name={index.names[1]}>
              <FrequentPairs pairs={b.said.pairs} texts={index.b.texts} side="b" />
            </SideTitle>
          </div>
        )}
        {a.said && b.said && a.texts && b.texts && (
          <PairExamples
            view={view}
            a={{ name: index.names[0], view: view.a, said: a.said, texts: a.texts }}
            b={{ name: index.names[1], view: view.b, said: b.said, texts: b.texts }}
          />
        )}
      </div>
    </>
  );
}

function SideTitle({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="twin-of">
      <p class="twin-name">
        <bdi>{name}</bdi>
      </p>
      {children}
    </div>
  );
}

/** Each part of the similarity, and what it is for other heads. */
function Similarity({ view: { index }, number }: { view: ComparisonView; number: number }) {
  const { parts, similarity, chance, nextBest } = index.pairs[number];
  return (
    <section class="card atlas-card twin-parts" aria-label="Similarity">
      <h2>
        Similarity <b class="number">{shortShare(similarity)}</b>
      </h2>
      <table>
        <tbody>
          {index.parts.map((name, at) => (
            <tr key={name}>
              <th scope="row">{PART_WORDS[name] ?? name}</th>
              <td>{shortShare(parts[at])}</td>
            </tr>
          ))}
          <tr class="twin-total">
            <th scope="row">mean of these</th>
            <td>
              <b>{shortShare(similarity)}</b>
            </td>
          </tr>
          <tr>
            <th scope="row">next best head of {index.names[1]}</th>
            <td>{shortShare(nextBest)}</td>
          </tr>
          <tr>
            <th scope="row">all its heads, on average</th>
            <td>{shortShare(chance)}</td>
          </tr>
        </tbody>
      </table>
    </section>
  );
}

const PART_WORDS: Readonly<Record<string, string>> = {
  distance: "attention by distance",
  classes: "by what query and key are",
  map: "mean map",
  scores: "scores of patterns",
  links: "strongest links between words",
};

/** Leads to both maps and to the pairs beside; Escape leads out, [ and ] to the pairs beside. */
function PairNav({ view: { index }, number }: { view: ComparisonView; number: number }) {
  const before = number > 0 ? pairAddress(index, number - 1) : undefined;
  const after = number + 1 < index.pairs.length ? pairAddress(index, number + 1) : undefined;
  useEffect(() => {
    const leads: Readonly<Record<string, string | undefined>> = { "[": before, "]": after, Escape: "#/" };
    const onKey = ({ key }: KeyboardEvent) => {
      const address = leads[key];
      if (address) location.hash = address;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [before, after]);
  return (
    <nav aria-label="Pairs">
      <a class="quiet" href="#/">
        ← Both atlases
      </a>
      {before && (
        <a class="quiet" href={before} aria-label="Pair before">
          ‹
        </a>
      )}
      {after && (
        <a class="quiet" href={after} aria-label="Pair after">
          ›
        </a>
      )}
    </nav>
  );
}
