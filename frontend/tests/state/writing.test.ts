import { afterEach, expect, test, vi } from "vitest";
import type { Asked, Model } from "../../src/source/model";
import { ModelError } from "../../src/source/source";
import { liveState } from "../../src/state/live";
import { createStore } from "../../src/state/store";
import { writingState } from "../../src/views/live/Writing";
import type { WriteEnd, WrittenToken } from "../../types/live";
import { answered, FACTS } from "../liveModel";
import { soon } from "../soon";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const ZERO = { do: "zero" as const, layer: 2, heads: [1] };
const END: WriteEnd = { id: "w1", text: "we went home again", stopped: "length" };
const TOKEN: WrittenToken = { id: 7, token: "again", continues: false, probability: 0.5, entropy: 1, alternatives: [] };

/** A live state over a model that writes these lines, and gives the record of what it wrote once `opening` is over. */
function started(lines: () => AsyncIterable<WrittenToken | WriteEnd>, opening: Promise<unknown> = Promise.resolve()) {
  const first = answered({ input: { text: "we went home" }, changes: [] });
  const opened = vi.fn(async (_: string, asked: Asked) => opening.then(() => answered(asked)));
  const write = vi.fn((_question: unknown, _ending: AbortSignal) => lines());
  const model = { ask: async (asked: Asked) => answered(asked), opened, write } as unknown as Model;
  const live = liveState(model, FACTS, first);
  const store = createStore(first.source);
  live.attach(store);
  ends.push(() => live.destroy(), store.destroy);
  return { live, store, opened, write, writing: writingState(live) };
}

test("what was written is shown in place of the text, with the changes that were on", async () => {
  const { live, store, write, writing } = started(async function* () {
    yield TOKEN;
    yield END;
  });
  // The change is waited for.
  live.toggle(ZERO);
  await writing.write(1, false);
  expect(write.mock.calls[0][0]).toMatchObject({ changes: [ZERO], tokens: 1 });
  expect([store.page.title, live.asked.value.changes]).toEqual(["we went home again", [ZERO]]);
  expect([writing.tokens.value, writing.running.value, writing.problem.value]).toEqual([[TOKEN], false, ""]);
});

test("it goes on from the tokens that were clicked, not from the text they make", async () => {
  const other = { id: 9, label: "##er", continues: true, probability: 0.2 };
  const { write, writing } = started(async function* () {
    yield TOKEN;
    yield { ...TOKEN, id: 8, alternatives: [other] };
    yield END;
  });
  await writing.write(2, false);
  await writing.write(2, false, { at: 1, choice: 9 });
  const [first, second] = write.mock.calls.map(([question]) => question);
  expect(first).toMatchObject({ input: { text: "we went home" }, written: [] });
  expect(second).toMatchObject({ input: { text: "we went home" }, written: [7, 9] });
});

test("a change that is made while what was written is opened stays on", async () => {
  let open = () => {};
  const opening = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { live, store, opened, writing } = started(async function* () {
    yield TOKEN;
    yield END;
  }, opening);
  const done = writing.write(1, false);
  await soon(() => expect(opened).toHaveBeenCalledOnce());
  live.toggle(ZERO);
  open();
  await done;
  await soon(() => expect(live.answer.value.asked).toEqual({ input: { text: "we went home" }, changes: [ZERO] }));
  expect([store.page.title, live.asked.value.changes, live.busy.value]).toEqual(["we went home", [ZERO], false]);
});

test("what is asked while a model writes ends that without an error", async () => {
  let replaced = () => {};
  const waiting = new Promise<void>((resolve) => {
    replaced = resolve;
  });
  const { live, write, writing } = started(async function* () {
    yield TOKEN;
    await waiting;
    throw new ModelError("a newer question came", 409);
  });
  const done = writing.write(20, false);
  expect(writing.running.value).toBe(true);
  await soon(() => expect(writing.tokens.value).toEqual([TOKEN]));
  live.toggle(ZERO);
  replaced();
  await done;
  expect(write.mock.calls[0][1].aborted).toBe(true);
  expect([writing.problem.value, writing.running.value]).toEqual(["", false]);
  await soon(() => expect(live.answer.value.asked.changes).toEqual([ZERO]));
});
