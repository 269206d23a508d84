import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { kindOfLabel } from "../../draw/kinds";
import { Quiet, walkTiles } from "../../parts/controls";
import { Clauses } from "../../parts/legend";
import { SketchBoard } from "../../parts/SketchBoard";
import type { AtlasIndex } from "../../source/atlas";
import * as atlas from "../../state/atlas";
import { type Drawing, emptyBoard, isDrawn, likest, meanBoards } from "../../state/sketch";
import { count, counted } from "../../state/words";
import { type AtlasView, HeadGrid, LabelChip, Tile } from "./parts";

type MapPageProps = { view: AtlasView; find: string; second?: AtlasView; children?: ComponentChildren };

/** The map of all heads, found by a word or by a drawing, or each with a metric: as dark, where there are no mean maps. */
export function MapPage({ view, find, second, children }: MapPageProps) {
  const { index, side } = view;
  const [board, setBoard] = useState<Drawing>(emptyBoard);
  const metric = atlas.metricOf(index, find);
  return (
    <>
      <header class={side && "atlas-head"}>
        {side && (
          <nav aria-label="Atlases">
            <a class="quiet muted" href="#/">
              ← Both atlases
            </a>
          </nav>
        )}
        <h1 tabIndex={-1}>{index.model || "Atlas of heads"}</h1>
        {!metric && <Facts index={index} />}
      </header>
      {!metric && <Search key={find} find={find} side={side} />}
      {!metric && <Sentence view={view} find={find} />}
      <Chips view={view} find={metric?.name ?? find} />
      {index.caution && <p class="caution">{index.caution}</p>}
      <div class={metric && !second ? "" : `atlas-body stack top ${second ? "atlas-both" : ""}`}>
        <AllHeads view={view} find={find} board={board} />
        {second && <AllHeads view={second} find="" board={board} />}
        {!metric && (
          <section class="card atlas-sketch" aria-label="Sketch">
            <h2>Sketch a pattern</h2>
            <p class="fine">
              Draw where tokens look, and the heads that do so come first. The row looks, the column is looked at.
            </p>
            <SketchBoard board={board} ends onDraw={setBoard} />
          </section>
        )}
      </div>
      {children}
      <p class="note muted">{index.summary}</p>
    </>
  );
}

function Facts({ index: { heads, texts, documents, tokens } }: { index: AtlasIndex }) {
  const of = documents === texts ? "" : ` of ${counted(documents, "document")}`;
  const words = `${counted(heads.length, "head")} over ${counted(texts, "text")}${of}, ${count(tokens)} tokens`;
  return <span class="facts muted">{words}</span>;
}

/** All heads by layer, or those that are found in their order. */
function AllHeads({ view, find, board }: { view: AtlasView; find: string; board: Drawing }) {
  const { index } = view;
  const drawn = isDrawn(board);
  const side = view.side && `${index.model}: `;
  const order = useMemo(
    () => (drawn ? byLikeness(view, board) : atlas.hitsOf(index, find)),
    [view, index, find, board, drawn],
  );
  const metric = atlas.metricOf(index, find);
  const shown = metric && !index.maps ? { ...view, maps: atlas.metricMaps(metric) } : view;
  const looking = drawn || (find !== "" && !metric);
  return (
    <section class="card atlas-all" aria-label="All heads">
      <p class="atlas-says muted" role="status">
        {looking ? (
          found(order, find, drawn)
        ) : (
          <bdi>{metric ? `${metric.says}${index.maps ? "" : ", the more ink the larger"}` : side + MEAN}</bdi>
        )}
      </p>
      {looking ? (
        <div
          class="atlas-ranked stack"
          role="group"
          aria-label="Heads in order"
          onKeyDown={(event) => walkTiles(event, 1)}
        >
          {order.map(({ at, why }, place) => (
            <Tile key={at} view={view} at={at} note={why} tabbed={place === 0} named />
          ))}
        </div>
      ) : (
        <HeadGrid
          grid={atlas.rowsOf(index.heads)}
          tile={(head, tabbed) => {
            const note = metric ? atlas.digits(metric.values[head]) : "";
            return <Tile key={head} view={shown} at={head} note={note} tabbed={tabbed} />;
          }}
        />
      )}
    </section>
  );
}

const MEAN =
  "Each tile is the mean attention of one head: rows look, columns are looked at, from the first to the last tokens of a text.";

function byLikeness({ maps, index }: AtlasView, board: Drawing): atlas.Hit[] {
  const heads = index.heads.map(({ layer, head }) => [layer, head] as const);
  const likeness = likest(board, { heads, boards: meanBoards(maps, index.side) });
  return likeness.map(({ at, likeness: value }) => ({ at, value, why: atlas.shortShare(value) }));
}

function found(hits: readonly atlas.Hit[], find: string, drawn: boolean): string {
  if (drawn) return "Heads whose mean map looks most like the drawing first, with the correlation.";
  if (hits.length === 0) {
    return `Nothing says “${find}”. Look for a label (previous), a kind of token (punctuation), a word (it) or a head (2-7).`;
  }
  return `${counted(hits.length, "head")}, those first of which “${find}” says most.`;
}

function Search({ find, side }: { find: string; side: atlas.Side }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target !== document.body) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <form
      class="atlas-search flex"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        location.hash = atlas.findAddress(field.current?.value.trim() ?? "", side);
      }}
    >
      <input
        ref={field}
        type="search"
        defaultValue={find}
        placeholder="previous, punctuation, it, 2-7"
        aria-label="Find heads by a label, a kind of token, a word or a name"
      />
      <Quiet type="submit">Find</Quiet>
    </form>
  );
}

/** What all heads do over the texts, in one sentence: a click shows those of a kind. */
function Sentence({ view: { index, side, dark }, find }: { view: AtlasView; find: string }) {
  return (
    <p class="story" data-story>
      Over {counted(index.texts, "text")}, of <strong>{counted(index.heads.length, "head")}</strong>{" "}
      <Clauses
        clauses={atlas.atlasClauses(index)}
        dark={dark}
        act={(kind) => ({
          href: atlas.findAddress(find === kind ? "" : kind, side),
          "aria-current": find === kind ? "true" : undefined,
        })}
      />
    </p>
  );
}

/** The labels that are of no kind, with how many heads hold them; of a tree its metrics. */
function Chips({ view, find }: { view: AtlasView; find: string }) {
  const { patterns, heads, metrics } = view.index;
  const counts = patterns.map(({ name, says }) => ({
    name,
    says,
    heads: heads.filter(({ labels }) => labels.some((label) => label.holds && label.name === name)).length,
  }));
  const shown = metrics ?? counts.filter((pattern) => pattern.heads > 0 && !kindOfLabel(pattern.name));
  return (
    <nav class="label-chips flex wrap" aria-label={metrics ? "Colour by" : "Labels"}>
      {shown.map(({ name, says, ...of }) => (
        <LabelChip
          key={name}
          name={name}
          dark={view.dark}
          note={"heads" in of && of.heads}
          href={atlas.findAddress(find === name ? "" : name, view.side)}
          current={find === name}
          title={says}
        />
      ))}
    </nav>
  );
}
