import { afterEach, expect, test, vi } from "vitest";
import { httpSource } from "../../src/source/source";
import { examplePage } from "../examples/page";

afterEach(() => vi.unstubAllGlobals());

const { page, chunks } = examplePage();

function serving(answers: Record<string, Response | Error>) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string, { headers }: { headers: Record<string, string> }) => {
    expect(headers).toEqual({ "X-Headscope-Token": "abc" });
    asked.push(address);
    const answer = answers[address] ?? new Response("", { status: 404 });
    if (answer instanceof Error) throw answer;
    return answer;
  });
  return asked;
}

test("the header comes at once, a chunk when it is asked for", async () => {
  const bytes = chunks.get("weights/self/2") as Uint8Array<ArrayBuffer>;
  const asked = serving({
    "./header.json": Response.json(page),
    "./chunk/weights/self/2": new Response(bytes),
  });
  const source = await httpSource("./", "abc");
  expect(source.header).toEqual(page);
  expect(asked).toEqual(["./header.json"]);
  expect(await source.chunk("weights/self/2")).toEqual(bytes);
});

test.each<[string, Response | Error, RegExp]>([
  ["a server that has ended", new TypeError("Failed to fetch"), /has ended. Start `headscope serve` again/],
  ["a page without its token", new Response("", { status: 403 }), /open the address that `headscope serve` printed/],
  ["a busy server", new Response("Many figures are being drawn", { status: 503 }), /^Many figures are being drawn$/],
  ["a fault", new Response("", { status: 500 }), /answered 500 when asked for “\.\/header.json”/],
  ["another version", Response.json({ ...page, format: 3 }), /format 3/],
])("%s is said", async (_, answer, message) => {
  serving({ "./header.json": answer });
  await expect(httpSource("./", "abc")).rejects.toThrow(message);
});

test.each([
  ["weights/a b?#%/0", "weights/a%20b%3F%23%25/0"],
  ["weights/../../etc/passwd/0", "weights%2F..%2F..%2Fetc%2Fpasswd%2F0"],
  ["weights/./0", "weights%2F.%2F0"],
  ["weights/..x/0", "weights/..x/0"],
])("a stack may be called anything: %s", async (name, address) => {
  const asked = serving({ "./header.json": Response.json(page), [`./chunk/${address}`]: new Response("") });
  const source = await httpSource("./", "abc");
  await source.chunk(name);
  expect(asked.at(-1)).toBe(`./chunk/${address}`);
  // What a browser would ask for stays within the folder.
  expect(new URL(`chunk/${address}`, "http://localhost/").pathname).toBe(`/chunk/${address}`);
});
