import { afterEach, expect, test, vi } from "vitest";
import type { Answered, Asked, Model } from "../../src/source/model";
import { ModelError } from "../../src/source/source";
import { liveState, wrongWith } from "../../src/state/live";
import { createStore } from "../../src/state/store";
import { answered, FACTS } from "../liveModel";
import { soon } from "../soon";

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A live state over a model that answers at once, or as `answer` says. */
function started(answer: (asked: Asked, ending?: AbortSignal) => Promise<Answered> = async (asked) => answered(asked)) {
  const asked: Asked[] = [];
  const ask = vi.fn((now: Asked, _: unknown, ending?: AbortSignal) => {
    asked.push(now);
    return answer(now, ending);
  });
  const first = answered({ input: { text: "we went home" }, changes: [] });
  const live = liveState({ ask } as unknown as Model, FACTS, first);
  const store = createStore(first.source);
  live.attach(store);
  ends.push(() => live.destroy(), store.destroy);
  return { live, store, asked };
}

const ZERO = { do: "zero", layer: 2, heads: [1] } as const;
const zero = { ...ZERO, heads: [1] };

test("a text is run once the keys rest, and only the newest of them", async () => {
  const { live, store, asked } = started();
  for (const text of ["we went", "we went out", "we went out today"]) live.type({ text });
  expect([live.busy.value, asked.length]).toEqual([true, 0]);
  await soon(() => expect(store.page.title).toBe("we went out today"));
  expect(asked.map(({ input }) => input.text)).toEqual(["we went out today"]);
  expect([live.busy.value, live.problem.value]).toEqual([false, ""]);
});

test("kinds are counted anew once typing rests", async () => {
  const { live, store } = started();
  await soon(() => expect(store.kinds.value?.left).toBe(0));
  const before = store.kinds.value?.stack;
  live.type({ text: "we went" });
  await soon(() => expect(store.page.title).toBe("we went"));
  expect(store.kinds.value?.stack).toBe(before);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(store.kinds.value?.stack).toBe(store.pieceStack.value);
});

test("a newer text ends the request of an older one", async () => {
  const ended: string[] = [];
  const { live, store } = started(
    (asked, ending) =>
      new Promise((resolve, reject) => {
        ending?.addEventListener("abort", () => {
          ended.push(asked.input.text ?? "");
          reject(new DOMException("", "AbortError"));
        });
        if (asked.input.text === "newer") resolve(answered(asked));
      }),
  );
  live.ask({ text: "older" });
  await new Promise((resolve) => setTimeout(resolve, 20));
  live.ask({ text: "newer" });
  await soon(() => expect(store.page.title).toBe("newer"));
  expect([ended, live.problem.value]).toEqual([["older"], ""]);
});

test("an empty or too long text is a message, and what is shown stays", async () => {
  const { live, store, asked } = started();
  live.type({ text: "  " });
  expect([live.problem.value.slice(0, 11), live.busy.value]).toEqual(["Type a text", false]);
  live.type({ text: "a".repeat(300) });
  expect(live.problem.value).toContain("at most 200");
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect([asked.length, store.page.title]).toEqual([0, "we went home"]);
});

test("an error of the server is told, and the change that it refused is off again", async () => {
  const { live, store } = started(async () => {
    throw new ModelError("There is no layer 2", 400);
  });
  live.toggle(zero);
  await soon(() => expect(live.problem.value).toBe("There is no layer 2"));
  expect([live.asked.value.changes, store.page.title, live.busy.value]).toEqual([[], "we went home", false]);
});

test("a question that a newer one replaced says nothing", async () => {
  const { live } = started(async () => {
    throw new ModelError("replaced", 409);
  });
  live.ask({ text: "other" });
  await soon(() => expect(live.busy.value).toBe(false));
  expect(live.problem.value).toBe("");
});

test("undoing a change asks for nothing: what was shown is still here", async () => {
  const { live, asked } = started();
  live.toggle(zero);
  await soon(() => expect(live.answer.value.opening.output?.places[0].kl).toBe(0.125));
  live.toggle(zero);
  await soon(() => expect(live.answer.value.asked.changes).toEqual([]));
  expect(asked.length).toBe(1);
  live.toggle(zero);
  live.undoAll();
  await soon(() => expect(live.busy.value).toBe(false));
  expect([live.answer.value.asked.changes, asked.length]).toEqual([[], 1]);
});

test("a cut follows its tokens into an edited text, or is let go with them", async () => {
  const { live, asked } = started();
  live.toggle({ do: "cut", layer: 0, heads: [1], queries: [3], keys: [0] });
  await soon(() => expect(live.answer.value.asked.changes.length).toBe(1));
  live.ask({ text: "well we went home" });
  await soon(() => expect(live.answer.value.asked.input.text).toBe("well we went home"));
  expect(asked.map(({ changes }) => changes[0]?.queries ?? null)).toEqual([[3], null, [4]]);
  live.ask({ text: "well we went" });
  await soon(() => expect(live.answer.value.asked).toMatchObject({ input: { text: "well we went" }, changes: [] }));
  expect(live.said.value).toContain("cut");
});

test("what is looked at goes with the question", async () => {
  const { live, store } = started();
  store.choose({ layer: 5, heads: [1] });
  expect(live.looking()).toEqual({ stack: "self", view: "head", layer: 5, heads: [1], quantity: "weight" });
});

test("a step is told once: of a change, and not of a text that is typed on", async () => {
  const { live, store } = started();
  live.ask({ text: "we went" });
  await soon(() => expect(store.page.title).toBe("we went"));
  expect(live.takeStep()).toBe(false);
  live.toggle(zero);
  await soon(() => expect(live.answer.value.asked.changes.length).toBe(1));
  expect([live.takeStep(), live.takeStep()]).toEqual([true, false]);
});

test("what is wrong with an input is known before it is sent", () => {
  expect(wrongWith({ text: "a" }, FACTS)).toBe("");
  expect(wrongWith({ messages: [{ role: "user", content: " " }] }, FACTS)).toBe("Type a message.");
  expect(wrongWith({}, { ...FACTS, fields: ["image"] })).toBe("Choose a picture.");
});
