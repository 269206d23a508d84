import { computed, effect, type ReadonlySignal, signal } from "@preact/signals-core";
import type { AttendedQuestion, LiveFacts, LiveGuess, LiveInput, LiveLooking, ModelChange } from "../../types/live";
import type { WhyPicture } from "../../types/why";
import type { Answered, Asked, Model } from "../source/model";
import { ModelError, messageOf } from "../source/source";
import { followed, keyOfChange, merged, toggled } from "./changes";
import { mattersState } from "./ranking";
import { movedPins, type Selection } from "./selection";
import { replaceRecord, type Store } from "./store";

/** Milliseconds without a key after which a text is run: as long as the last run took, within these. */
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [80, 300];
/** Answers that stay, so that to undo something asks for nothing. */
const MOST_KEPT = 6;
/** Milliseconds after which a text that is typed on is a new step to go back to. */
const STEP = 2500;
/** The status of a question that a newer one took the place of. */
const REPLACED = 409;

export type Live = ReturnType<typeof liveState>;

/** What may come next at a place of the output. */
export interface Guess {
  readonly at: number;
  readonly choice: LiveGuess;
  /** The others, too. */
  readonly guesses: readonly LiveGuess[];
}

/** A text and changes as they are typed and chosen, and what the model says of them. */
export function liveState(model: Model, facts: LiveFacts, first: Answered) {
  const signals = signalsOf(first);
  const { asked, busy, total } = signals;
  const shown = shownState(first, signals);
  const runs = runState(model, facts, signals, shown);
  const matters = mattersState({ model, facts, ...signals });
  const why = whyState(model, signals);
  const attended = attendedState(model, signals);
  return {
    model,
    facts,
    ...signals,
    matters,
    why,
    attended,
    looking: () => shown.looking(asked.peek()),
    attach: shown.attach,
    takeStep: shown.takeStep,
    /** Something is typed: it is run when the keys rest. */
    type: (input: LiveInput) =>
      runs.want({ input }, Math.min(LONGEST_PAUSE, Math.max(SHORTEST_PAUSE, total.peek() || LONGEST_PAUSE))),
    /** Nothing is run as long as a text is being composed. */
    hold: runs.hold,
    ask: (input: LiveInput) => runs.want({ input }),
    /** Switches a change on, or off where it is on. */
    toggle: (change: ModelChange) => runs.want({ changes: toggled(asked.peek().changes, change) }),
    undoAll: () => runs.want({ changes: [] }),
    /** Shows something that was asked before. */
    go: (to: Asked, selection?: Selection) => runs.want(to, 0, selection),
    /** Shows a record that was made another way, such as of a text that was written; false where it is not wanted. */
    async open(id: string, to: Asked, ending: AbortSignal): Promise<boolean> {
      const opened = await model.opened(id, to, shown.looking(asked.peek()));
      // Something newer may have been asked meanwhile, which this must not take the place of.
      if (ending.aborted) return false;
      runs.stop();
      asked.value = opened.asked;
      return shown.show(opened);
    },
    /** Waits until nothing that was asked is without an answer. */
    settled: () =>
      new Promise<void>((resolve) => {
        const unwatch = effect(() => {
          if (busy.value) return;
          resolve();
          // The first time this runs, there is nothing yet to end.
          queueMicrotask(() => unwatch());
        });
      }),
    destroy(): void {
      runs.stop();
      matters.stop();
      why.stop();
      attended.stop();
    },
  };
}

function signalsOf(first: Answered) {
  return {
    /** What the reader wants, which may not be answered yet. */
    asked: signal<Asked>(first.asked),
    /** What is shown. */
    answer: signal(first),
    busy: signal(false),
    /** What is wrong, in one line. */
    problem: signal(""),
    /** What was done beside what was asked for. */
    said: signal(""),
    /** Milliseconds of the last run. */
    total: signal(0),
    /** A guess that the model is to go on from; the panel that writes takes it away. */
    branch: signal<Guess | null>(null),
  };
}

type Signals = ReturnType<typeof signalsOf>;
type ShownState = ReturnType<typeof shownState>;

/** Puts answers in place of each other, and keeps the last ones. */
function shownState(first: Answered, { answer, problem }: Signals) {
  let kept: readonly Answered[] = [first];
  let store: Store | null = null;
  let latest = performance.now();
  let step = false;
  /** With the first change the differences are shown. */
  function quantityFor({ changes }: Asked): string {
    const now = store?.selection.peek().quantity ?? "weight";
    const isFirst = changes.length > 0 && answer.peek().asked.changes.length === 0;
    return isFirst && now === "weight" ? "difference" : now;
  }
  function commit(next: Answered): void {
    const now = performance.now();
    const changed =
      String(answer.peek().asked.changes.map(keyOfChange)) !== String(next.asked.changes.map(keyOfChange));
    step ||= changed || now - latest > STEP;
    latest = now;
    problem.value = "";
    answer.value = next;
    // What the model wrote itself says nothing of its output: to undo a change, the model is asked.
    if (next.opening.output) kept = [...kept.filter((one) => !isSame(one.asked, next.asked)), next].slice(-MOST_KEPT);
  }
  return {
    /** The state that shows what is answered; another one where a record beside it is shown. */
    attach(shown: Store): void {
      store = shown;
    },
    /** An answer that is still here. */
    keptOf: (now: Asked) => kept.find(({ asked }) => isSame(asked, now)),
    async show(next: Answered, selection?: (now: Selection) => Selection): Promise<boolean> {
      if (!store) return false;
      const before = answer.peek().source.header;
      const quantity = quantityFor(next.asked);
      const changed = next.asked.changes.at(-1);
      if (next.asked.input !== answer.peek().asked.input) store.holdKinds();
      const follow = (now: Selection) => {
        const moved = { ...movedPins(now, before, next.source.header), quantity };
        // An overview in which no head is kept goes on showing the one that was changed, not the clearest.
        const loose = now.view === "overview" && now.heads === null && changed?.heads?.length === 1;
        return loose ? { ...moved, layer: changed.layer, heads: changed.heads ?? null } : moved;
      };
      return replaceRecord(store, next.source, selection ?? follow, () => commit(next));
    },
    /** What is looked at: the answer brings what that needs. */
    looking(now: Asked): LiveLooking {
      if (!store) return {};
      const { stack, view } = store.selection.peek();
      const { head_numbers: numbers } = store.stack.peek();
      const heads = numbers.length > 1 && { heads: [numbers[store.full.peek() % numbers.length]] };
      return { stack, view, layer: store.layerNumber.peek(), ...heads, quantity: quantityFor(now) };
    },
    /** Whether what was shown last is a step of its own to go back to; told once. */
    takeStep(): boolean {
      const was = step;
      step = false;
      return was;
    },
  };
}

/** Runs the newest of what is wanted, and ends what is older. */
function runState(model: Model, facts: LiveFacts, signals: Signals, shown: ShownState) {
  const { asked, answer, busy, problem, said, total } = signals;
  let running: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  function want(next: Partial<Asked>, pause = 0, selection?: Selection): void {
    stop();
    asked.value = { ...asked.peek(), ...next };
    const now = asked.peek();
    problem.value = wrongWith(now.input, facts);
    busy.value = problem.peek() === "";
    if (busy.peek()) timer = setTimeout(() => void run(now, selection), pause);
  }
  async function run(now: Asked, selection?: Selection): Promise<void> {
    const mine = new AbortController();
    running = mine;
    const began = performance.now();
    try {
      const next = shown.keptOf(now) ?? (await answerTo(now, mine.signal));
      if (mine.signal.aborted || !(await shown.show(next, selection && (() => selection)))) return;
      total.value = performance.now() - began;
      if (!mine.signal.aborted) busy.value = false;
    } catch (error) {
      if (!mine.signal.aborted) fail(error, now);
    }
  }
  /** Asks the model; changes at tokens follow these where the text is another. */
  async function answerTo(now: Asked, ending: AbortSignal): Promise<Answered> {
    const before = answer.peek();
    const edited = !isSame({ ...now, changes: [] }, { ...before.asked, changes: [] });
    const looking = shown.looking(now);
    if (!edited || !now.changes.some(({ queries, keys }) => queries ?? keys)) return model.ask(now, looking, ending);
    // Where tokens are in the new text is known when it was read once.
    const plain = await model.ask({ ...now, changes: [] }, looking, ending);
    const { kept, lost } = followed(now.changes, before.source.header.stacks, plain.source.header.stacks);
    if (lost.length > 0) said.value = `let go with its token: ${lost.map(({ do: kind }) => kind).join(", ")}`;
    asked.value = { ...now, changes: kept };
    return kept.length > 0 ? model.ask(asked.peek(), looking, ending) : plain;
  }
  function fail(error: unknown, now: Asked): void {
    busy.value = false;
    if (error instanceof ModelError && error.status === REPLACED) return;
    problem.value = messageOf(error);
    // A change that cannot be made is no switch that is on.
    const { changes } = answer.peek().asked;
    if (now.changes !== changes && error instanceof ModelError) asked.value = { ...asked.peek(), changes };
  }
  function stop(): void {
    clearTimeout(timer);
    running?.abort();
    busy.value = false;
  }
  return { want, stop, hold: () => clearTimeout(timer) };
}

const OTHERS = "What was written has other tokens when it is read as a text; ask why of a text that was typed";

/** Why a token was said: how far it got, and then the way back from it; of the text that is read now. */
function whyState(model: Model, { asked, answer }: Signals) {
  const part = signal(0);
  const last = signal<{ readonly to: Asked; readonly picture: WhyPicture } | null>(null);
  const input = computed(() => JSON.stringify(asked.value.input));
  const { run, ...question } = newestQuestion(input);
  return {
    ...question,
    /** From 0 to 1. */
    progress: part,
    /** Stays while links are cut; null where nothing was asked of this text. */
    shown: computed(() => (JSON.stringify(last.value?.to.input) === input.value ? last.value : null)),
    start: (at: number, id: number) =>
      run(async (ending) => {
        [part.value, last.value] = [0, null];
        const { asked: to, source } = answer.peek();
        for await (const line of model.why({ ...to, changes: [...to.changes], at, id }, ending)) {
          if ("done" in line) part.value = line.done / line.of;
          else if (source.header.stacks[0].query.labels.every((label, place) => label === line.picture.tokens[place]))
            last.value = { to, picture: line.picture };
          else throw new Error(OTHERS);
        }
      }),
  };
}

type Pair = Pick<AttendedQuestion, "stack" | "place">;

/** Why a head attends from one token to another, in the text and with the changes that are shown. */
function attendedState(model: Model, { asked, answer }: Signals) {
  const told = signal<{ readonly of: string; readonly html: string } | null>(null);
  const { run, ...question } = newestQuestion(answer);
  const keyOfPair = (pair: Pair) => JSON.stringify([asked.value, pair]);
  return {
    ...question,
    /** What was told of a pair; empty where it was not asked about. */
    toldOf: (pair: Pair) => (told.value?.of === keyOfPair(pair) ? told.value.html : ""),
    start: (pair: Pair) =>
      run(async (ending) => {
        const [of, { asked: to, source }] = [keyOfPair(pair), answer.peek()];
        const stack = source.header.stacks.find(({ name }) => name === pair.stack);
        const sides = [stack?.query, stack?.key];
        for await (const line of model.attended({ ...to, changes: [...to.changes], ...pair }, ending)) {
          if (!line.pair.every(([label, at], side) => sides[side]?.labels[at] === label)) throw new Error(OTHERS);
          told.value = { of, html: line.html };
        }
      }),
  };
}

/** Whether two questions have one answer. */
export function isSame(one: Asked, other: Asked): boolean {
  return keyOf(one) === keyOf(other);
}

function keyOf({ input, changes }: Asked): string {
  return JSON.stringify([Object.entries(input).sort(), merged(changes).map(keyOfChange)]);
}

/** What is wrong with a text before it is sent; empty where nothing is. */
export function wrongWith(input: LiveInput, { limits, fields }: LiveFacts): string {
  const { text, messages, image, audio, text_b: second = "", target = "" } = input;
  const characters = (text ?? "").length + second.length + target.length;
  if (limits.characters > 0 && characters > limits.characters)
    return `Too long: ${characters} characters; at most ${limits.characters} are read. What is shown is the text before.`;
  if (text !== undefined && text.trim() === "" && !image && !audio)
    return "Type a text. What is shown is the text before.";
  if (messages?.every(({ content }) => content.trim() === "")) return "Type a message.";
  if (!fields.includes("text") && fields.includes("image") && !image) return "Choose a picture.";
  return "";
}

/** One thing that is asked again and again: of several only the newest is answered, and what went wrong is said. */
export function newestQuestion(asked?: ReadonlySignal<unknown>) {
  const [running, problem] = [signal(false), signal("")];
  let newest: AbortController | undefined;
  return {
    running,
    problem,
    /** Asks, after `first`; ends where something newer is asked, also of the model where that is given. */
    async run(ask: (ending: AbortSignal) => Promise<unknown>, first?: Promise<unknown>): Promise<void> {
      newest?.abort();
      const mine = new AbortController();
      newest = mine;
      [running.value, problem.value] = [true, ""];
      let unwatch: (() => void) | undefined;
      try {
        if (first) await first;
        if (mine.signal.aborted) return;
        const before = asked?.peek();
        unwatch = effect(() => {
          if (asked?.value !== before) mine.abort();
        });
        await ask(mine.signal);
      } catch (error) {
        if (!mine.signal.aborted) problem.value = messageOf(error);
      } finally {
        unwatch?.();
        if (newest === mine) running.value = false;
      }
    },
    stop(): void {
      newest?.abort();
      running.value = false;
    },
  };
}
