import { useEffect, useMemo } from "preact/hooks";
import { Segmented } from "../../parts/Segmented";
import { SketchBoard } from "../../parts/SketchBoard";
import { sketchState } from "../../state/ranking";
import { boardOf } from "../../state/sketch";
import { counted, shortWeight } from "../../state/words";
import type { LiveParts } from "./LiveBar";
import { RankedHeads } from "./Matters";

/** A blank map to draw a pattern on, and the heads that look most like it: on this text, or over those of an atlas. */
export function Sketch({ live, store }: LiveParts) {
  const state = useMemo(() => sketchState(live), [live]);
  const { name } = store.pieceStack.value;
  const answer = live.answer.value;
  // Another text has other weights.
  useEffect(() => {
    if (answer) state.rank(name);
  }, [answer, state, name]);
  const over = state.over.value;
  const fromHead = () => {
    const head = store.head.value;
    if (over === "atlas") return void state.drawHead(store.layerNumber.value, head, name);
    const { weights } = store.shown.value ?? {};
    if (!weights) return;
    state.draw(
      boardOf((query, key) => weights.row(head, query)[key], weights.queries, weights.keys),
      name,
    );
  };
  const { atlas } = live.facts;
  return (
    <div class="live-sketch stack top">
      <div class="live-legend row wrap">
        {atlas > 0 && (
          <Segmented
            label="Heads are ranked on"
            options={["text", "atlas"]}
            labels={{ text: "this text", atlas: `the atlas (${counted(atlas, "text")})` }}
            chosen={over}
            onChoose={(chosen) => state.choose(chosen as typeof over, name)}
          />
        )}
        <span>
          {over === "atlas"
            ? "Draw where tokens look: rows look, columns are looked at, the first six and the last six tokens of a text. Heads by the correlation with their mean map."
            : "Draw where tokens look: rows look, columns are looked at. Heads by the cosine with their weights."}
        </span>
        <small role="alert">{state.problem.value}</small>
      </div>
      <SketchBoard board={state.board.value} ends={over === "atlas"} onDraw={(board) => state.draw(board, name)}>
        <button class="quiet muted" data-stamp-head onClick={fromHead}>
          as the shown head
        </button>
      </SketchBoard>
      <RankedHeads
        store={store}
        name="sketched"
        label="Heads, the likest first"
        heads={state.heads.value.map(({ layer, head, likeness }) => ({
          layer,
          head,
          part: Math.max(0, likeness),
          text: shortWeight(likeness),
        }))}
      />
    </div>
  );
}
