import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import type { Live } from "../../state/live";
import { isInAddress, MOST_IN_ADDRESS } from "../../state/liveAddress";
import type { Store } from "../../state/store";
import { count } from "../../state/words";
import { ChangeMaker, Switches } from "./Changes";
import { Fields } from "./Fields";
import { MattersOnGrid } from "./MattersOnGrid";
import { OutputPanel } from "./OutputPanel";
import { panelsOf } from "./panels";

export interface LiveParts {
  live: Live;
  store: Store;
}

/** What the model reads, what it says, what is done to it, and what else can be asked of it. */
export function LiveBar({ live, store }: LiveParts) {
  const open = useSignal("");
  useSignalEffect(() => {
    if (live.branch.value) open.value = "write";
  });
  const panels = panelsOf(live);
  const Panel: ComponentType<LiveParts> | undefined = panels.find(({ name }) => name === open.value)?.Panel;
  return (
    <section
      class="card live"
      aria-label="Live model"
      aria-busy={live.busy.value}
      data-live={live.busy.value ? "running" : "ready"}
    >
      <div class="live-main">
        <div class="live-left">
          <Fields live={live} />
          <Facts live={live} store={store} />
        </div>
        <OutputPanel live={live} store={store} />
      </div>
      <p class="live-problem" role="alert" data-problem>
        {live.problem.value}
      </p>
      <Switches live={live} store={store} />
      <MattersOnGrid live={live} store={store} />
      <div class="live-tools">
        <ChangeMaker live={live} store={store} />
        <div class="live-panels" role="group" aria-label="More to ask">
          {panels.map(({ name, words, title }) => (
            <button
              key={name}
              class="quiet"
              data-panel={name}
              aria-expanded={open.value === name}
              title={title}
              onClick={() => {
                open.value = open.value === name ? "" : name;
              }}
            >
              {words}
            </button>
          ))}
        </div>
      </div>
      {Panel && (
        <div class="live-panel" data-open-panel={open.value}>
          <Panel live={live} store={store} />
        </div>
      )}
    </section>
  );
}

/** On what it runs, how long the text is and how long the answer took. */
function Facts({ live, store }: LiveParts) {
  const { facts, answer, asked, total, said } = live;
  const { device, dtype, revision, limits, fields } = facts;
  const tokens = store.pieceStack.value.query.labels.length;
  const of = limits.tokens > 0 && fields.includes("text") ? ` of ${count(limits.tokens)}` : "";
  const words = [device, dtype, revision.slice(0, 8), `${count(tokens)}${of} tokens`];
  return (
    <p class="live-facts" data-live-facts>
      <span title={revision && `revision ${revision}`}>{words.filter(Boolean).join(" · ")}</span>
      {total.value > 0 && (
        <span title={timingWords(answer.value.opening.timings)}> · answered in {Math.round(total.value)} ms</span>
      )}
      {!isInAddress(asked.value) && (
        <span> · not in the address: longer than {count(MOST_IN_ADDRESS)} characters, or no text</span>
      )}
      {said.value && <span data-live-said> · {said.value}</span>}
    </p>
  );
}

function timingWords(timings: Readonly<Record<string, number>>): string {
  return Object.entries(timings)
    .map(([name, time]) => `${name} ${time.toFixed(0)} ms`)
    .join(", ");
}
