import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Quiet } from "../../parts/controls";
import { saveMade } from "../../parts/files";
import { isTyping, type ViewParts } from "../../parts/mount";
import * as changes from "../../state/changes";
import type { Live } from "../../state/live";
import type { Store } from "../../state/store";
import { count } from "../../state/words";
import { App } from "../app/App";
import { UnderPin } from "../one/OneHead";
import { Answering } from "./Answering";
import { Attended } from "./Attended";
import { ChangeMaker, Switches } from "./Changes";
import { Fields, FurtherFields } from "./Fields";
import { Matters, MattersOnGrid, Sketch } from "./Matters";
import { OutputPanel } from "./OutputPanel";
import { TwoTexts } from "./TwoTexts";
import { Why } from "./Why";
import { Writing } from "./Writing";

export type LiveParts = { live: Live; store: Store };

/** What the model reads, what it says and what is done to it; all else that can be asked stands behind one word. */
export function LiveBar({ live, store }: LiveParts) {
  const [open, more] = [useSignal(""), useSignal(false)];
  useSignalEffect(() => {
    if (!live.branch.value) return;
    open.value = "write";
    more.value = true;
  });
  const panels = panelsOf(live);
  const Panel = panels.find(([name]) => name === open.value)?.[3];
  return (
    <section
      class="card live stack relative"
      aria-label="Live model"
      aria-busy={live.busy.value}
      data-live={live.busy.value ? "running" : "ready"}
    >
      <Fields live={live} />
      <Facts live={live} store={store} />
      <p class="live-problem" role="alert" data-problem>
        {live.problem.value}
      </p>
      <OutputPanel live={live} store={store} />
      <Why live={live} store={store} />
      <Switches live={live} store={store} />
      <MattersOnGrid live={live} store={store} />
      <details class="live-tools" open={more.value} onToggle={(event) => (more.value = event.currentTarget.open)}>
        <summary class="quiet muted" data-live-more>
          More changes and questions
        </summary>
        <ChangeMaker live={live} store={store} />
        <FurtherFields live={live} />
        <div class="live-panels row wrap" role="group" aria-label="More to ask">
          {panels.map(([name, words, title]) => (
            <Quiet
              key={name}
              data-panel={name}
              aria-expanded={open.value === name}
              title={title}
              onClick={() => (open.value = open.value === name ? "" : name)}
            >
              {words}
            </Quiet>
          ))}
        </div>
        {Panel && (
          <div class="live-panel ruled stack" data-open-panel={open.value}>
            <Panel live={live} store={store} />
          </div>
        )}
      </details>
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
    <p class="live-facts muted" data-live-facts>
      <span title={revision && `revision ${revision}`}>{words.filter(Boolean).join(" · ")}</span>
      {total.value > 0 && (
        <span
          title={Object.entries(answer.value.opening.timings)
            .map(([name, time]) => `${name} ${time.toFixed(0)} ms`)
            .join(", ")}
        >
          {" "}
          · answered in {Math.round(total.value)} ms
        </span>
      )}
      {!changes.isInAddress(asked.value) && (
        <span> · not in the address: longer than {count(changes.MOST_IN_ADDRESS)} characters, or no text</span>
      )}
      {said.value && <span data-live-said> · {said.value}</span>}
    </p>
  );
}

type Panel = readonly [name: string, words: string, title: string, Panel: ComponentType<LiveParts>, there: boolean];

/** What else can be asked of a model: only what it can answer. */
function panelsOf({ facts: { writes, matters, beside, fields } }: Live): readonly Panel[] {
  const two = beside ? "two texts, two models" : "two texts";
  const all: readonly Panel[] = [
    ["answer", "answer", "Answer it, and see which parts each word looked at and needed", Answering, writes],
    ["write", "write on", "The model continues the text", Writing, writes],
    ["matters", "which heads matter?", "Which heads the guess rests on", Matters, matters.length > 0],
    ["sketch", "sketch", "Draw a pattern and find the heads that look like it", Sketch, true],
    ["two", two, "The same heads on a second text or in a second model", TwoTexts, fields.includes("text")],
    ["keep", "keep", "The record or a page as a file, and the line of Python", Keep, true],
  ];
  return all.filter(([, , , , there]) => there);
}

/** All places with a model in a column at their left; `keys` is where the key of changes is listened to. */
export function liveApp(live: Live, keys: EventTarget = document) {
  return function LiveApp({ store, room }: ViewParts) {
    const bar = useRef<HTMLDivElement>(null);
    live.attach(store);
    useEffect(() => {
      if (!bar.current) return;
      const element = bar.current;
      return listenToChanges(element, store, live, keys);
    }, [store]);
    useSignalEffect(() => {
      store.said.value = live.said.value;
    });
    return (
      <UnderPin.Provider value={<Attended live={live} store={store} />}>
        <App store={store} room={room}>
          <div ref={bar} class="live-place slim">
            <LiveBar live={live} store={store} />
          </div>
        </App>
      </UnderPin.Provider>
    );
  };
}

/** Listens to clicks with Alt and to the key x, which change a head, a link or a token; gives what ends that. */
function listenToChanges(bar: HTMLElement, store: Store, live: Live, keys: EventTarget): () => void {
  const root = bar.closest("[data-headscope]") ?? bar;
  const several = () => store.page.stacks.length > 1;
  const onClick = (event: Event) => {
    const { altKey, target } = event as MouseEvent;
    const subject = altKey && target instanceof Element ? changes.subjectAt(target, store) : null;
    if (!subject) return;
    // Else the same click would also choose the head, or pin the token.
    event.preventDefault();
    event.stopPropagation();
    live.toggle(changes.quickChange(subject, several()));
  };
  const onKey = (event: Event) => {
    const { key, ctrlKey, metaKey, altKey } = event as KeyboardEvent;
    const focused = (root.getRootNode() as ShadowRoot).activeElement;
    if (key !== "x" || ctrlKey || metaKey || altKey || isTyping(event)) return;
    const at = focused && root.contains(focused) ? changes.subjectAt(focused, store) : null;
    const subject = at ?? { ...changes.subjectOf(store), query: null, key: null };
    // All heads of a layer at once is nothing that a single key should do.
    if (subject.heads === null) {
      live.said.value = "Choose one head first, then press x";
      return;
    }
    live.toggle(changes.quickChange(subject, several()));
  };
  root.addEventListener("click", onClick, { capture: true });
  keys.addEventListener("keydown", onKey);
  return () => {
    root.removeEventListener("click", onClick, { capture: true });
    keys.removeEventListener("keydown", onKey);
  };
}

const FILES = { download: ["record", "safetensors"], page: ["page", "html"] } as const;

/** What is shown as a file, and as the lines of Python that make it. */
function Keep({ live, store }: LiveParts) {
  const said = useSignal("");
  const { asked, opening } = live.answer.value;
  const line = changes.pythonLine(asked.input, opening.python);
  const { model } = live;
  const save = (kind: keyof typeof FILES) =>
    saveMade(said, FILES[kind].join("."), () =>
      kind === "page" ? model.page(opening.id, store.selection.peek()) : model.file(opening.id),
    );
  return (
    <div class="live-keep row wrap">
      <button class="live-go" data-keep="download" onClick={() => save("download")}>
        record (.safetensors)
      </button>
      <button class="live-go" data-keep="page" onClick={() => save("page")}>
        page (.html), opens without a model
      </button>
      <small role="status">{said.value}</small>
      <code class="live-python muted" data-python-line>
        {line}
      </code>
    </div>
  );
}
