import { afterEach, expect, test, vi } from "vitest";
import { httpModel, openingIn } from "../../src/source/model";
import { ModelError } from "../../src/source/source";
import { answerTo, FACTS } from "../liveModel";

afterEach(() => vi.unstubAllGlobals());

type Answer = (path: string, options: RequestInit) => Response | Promise<Response>;

/** A model whose server answers so, and what it was asked. */
function modelOf(answer: Answer) {
  const asked: { path: string; options: RequestInit }[] = [];
  vi.stubGlobal("fetch", async (path: string, options: RequestInit = {}) => {
    asked.push({ path, options });
    return answer(path, options);
  });
  return { model: httpModel("./", "secret", "tab"), asked };
}

const ASKED = { input: { text: "we went home" }, changes: [] };

test("a question goes out as JSON with the token in a header, and its answer is a source", async () => {
  const { model, asked } = modelOf(() => new Response(answerTo("we went home", [])));
  const { source, opening } = await model.ask(ASKED, { layer: 2 });
  expect(asked.map(({ path }) => path)).toEqual(["./ask"]);
  const { headers, body } = asked[0].options;
  expect(headers).toMatchObject({ "X-Headscope-Token": "secret", "Content-Type": "application/json" });
  expect(JSON.parse(String(body))).toEqual({ page: "tab", ...ASKED, looking: { layer: 2 } });
  expect([opening.id, source.header.stacks[0].query.labels]).toEqual(["r1", ["[CLS]", "we", "went", "home", "[SEP]"]]);
  expect((await source.chunk("weights/self/2")).length).toBe(3 * 5 * 7);
  expect(asked.length).toBe(1);
});

test("what did not come with the answer is asked for by the record's id", async () => {
  const { model, asked } = modelOf((path) =>
    path.endsWith("/ask") ? new Response(answerTo("we went home", [])) : new Response(new Uint8Array([7])),
  );
  const { source } = await model.ask(ASKED, {});
  expect([...(await source.chunk("weights/own name/9"))]).toEqual([7]);
  await source.figure?.("svg", { layer: 2 });
  expect(asked.slice(1).map(({ path }) => path)).toEqual([
    "./record/r1/chunk/weights/own%20name/9",
    "./record/r1/figure/svg?options=%7B%22layer%22%3A2%7D",
  ]);
});

test("a record that is gone is asked for again, once for all that want it", async () => {
  let ids = 0;
  const { model, asked } = modelOf((path) => {
    if (path.endsWith("/ask")) return new Response(answerTo("we went home", [], `r${++ids}`));
    return path.includes("/r1/")
      ? Response.json({ error: "gone" }, { status: 410 })
      : new Response(new Uint8Array([7]));
  });
  const { source } = await model.ask(ASKED, {});
  const both = await Promise.all([source.chunk("late/1"), source.chunk("late/2")]);
  expect(both.map((bytes) => bytes.length)).toEqual([1, 1]);
  expect(asked.filter(({ path }) => path.endsWith("/ask")).length).toBe(2);
});

test("errors say what the server said, with the status", async () => {
  const said = async (answer: Answer) => {
    const error = await modelOf(answer)
      .model.ask(ASKED, {})
      .catch((caught) => caught);
    return [error.message, error.status];
  };
  expect(await said(() => Response.json({ error: "400 tokens; at most 64" }, { status: 400 }))).toEqual([
    "400 tokens; at most 64",
    400,
  ]);
  expect(await said(() => new Response("", { status: 500 }))).toEqual([
    expect.stringMatching(/^The server answered 500/),
    500,
  ]);
  expect((await said(() => new Response("", { status: 403 })))[0]).toContain("does not know this page");
  expect((await said(() => Promise.reject(new TypeError("refused"))))[0]).toContain("it has ended");
});

test("an answer that ends too early is told, and never half read", async () => {
  const whole = answerTo("we went home", []);
  for (const length of [2, 40, whole.length - 1]) {
    await expect(openingIn(new Response(whole.slice(0, length)))).rejects.toThrow("ends too early");
  }
});

test("lines come one by one, whatever pieces they travel in, and an error is thrown", async () => {
  const pieces = ['{"token":"a","id', '":1}\n{"token":"b","id":2}\n{"id":"r9"', ',"text":"a b","stopped":"end"}'];
  const { model } = modelOf(() => new Response(streamOf(pieces)));
  const question = { input: { text: "a" }, changes: [], tokens: 2 };
  const lines = [];
  for await (const line of model.write(question, new AbortController().signal)) lines.push(line.id);
  expect(lines).toEqual([1, 2, "r9"]);
  const { model: failing } = modelOf(() => new Response(streamOf(['{"error":"stopped after 20 s"}\n'])));
  const read = async () => {
    for await (const _ of failing.matters({ ...question, target: {}, method: "exact" }, new AbortController().signal));
  };
  await expect(read()).rejects.toThrow(new ModelError("stopped after 20 s", 200));
});

function streamOf(pieces: readonly string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

test("facts and files are asked for by their address", async () => {
  const { model, asked } = modelOf((path) => (path.endsWith("json") ? Response.json(FACTS) : new Response("file")));
  expect((await model.facts()).name).toBe("example/tiny");
  expect(await (await model.file("r1")).text()).toBe("file");
  expect(await (await model.page("r1", { layer: 2 })).text()).toBe("file");
  expect(asked.slice(1).map(({ path }) => path)).toEqual([
    "./record/r1/download",
    "./record/r1/page?selection=%7B%22layer%22%3A2%7D",
  ]);
});
