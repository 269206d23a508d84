import { afterEach, beforeEach, expect, test, vi } from "vitest";

let whenIdle: typeof import("../../src/state/store/loading").whenIdle;

beforeEach(async () => {
  // Tests of other files may have left tasks that wait in the one list of the process.
  vi.resetModules();
  ({ whenIdle } = await import("../../src/state/store/loading"));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("without idle times tasks are done in order, one at a time, with pauses", () => {
  vi.useFakeTimers();
  vi.stubGlobal("requestIdleCallback", undefined);
  const done: number[] = [];
  for (const task of [1, 2, 3]) whenIdle(() => done.push(task));
  expect(done).toEqual([]);
  vi.advanceTimersToNextTimer();
  expect(done).toEqual([1]);
  vi.advanceTimersByTime(20);
  expect(done).toEqual([1]);
  vi.advanceTimersByTime(5000);
  expect(done).toEqual([1, 2, 3]);
});

test("of a browser that tells its idle times one is asked for at a time", () => {
  const asked: (() => void)[] = [];
  vi.stubGlobal("requestIdleCallback", (task: () => void) => asked.push(task));
  const done: string[] = [];
  whenIdle(() => {
    done.push("first");
    whenIdle(() => done.push("third"));
  });
  whenIdle(() => done.push("second"));
  expect(asked.length).toBe(1);
  for (let at = 0; at < asked.length; at++) asked[at]();
  expect(done).toEqual(["first", "second", "third"]);
});

test("a task that fails does not keep the others back", () => {
  const asked: (() => void)[] = [];
  vi.stubGlobal("requestIdleCallback", (task: () => void) => asked.push(task));
  const done = vi.fn();
  whenIdle(() => {
    throw new Error("no");
  });
  whenIdle(done);
  expect(asked[0]).toThrow("no");
  asked[1]();
  expect(done).toHaveBeenCalledOnce();
});
