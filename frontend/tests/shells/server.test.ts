// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";

const opened: string[] = [];
vi.mock("../../src/source/source", async (original) => ({
  ...(await original<object>()),
  httpSource: async (_: string, token: string) => {
    opened.push(token);
    return { header: { title: "A title" } };
  },
}));
vi.mock("../../src/shells/show", () => ({
  openPage: async (_: HTMLElement, open: () => Promise<unknown>) => void (await open()),
}));

const { serve } = await import("../../src/shells/live");
const element = document.createElement("div");

beforeEach(() => {
  opened.length = 0;
  sessionStorage.clear();
});
afterEach(() => vi.restoreAllMocks());

test("the token leaves the address, stays for a reload and is in no cookie", async () => {
  history.replaceState(null, "", "/?token=abc#v=2&layer=3");
  await serve(element);
  expect(location.href).toMatch(/\/#v=2&layer=3$/);
  expect(document.cookie).toBe("");
  expect(document.title).toBe("A title");
  await serve(element);
  expect(opened).toEqual(["abc", "abc"]);
});

test("a token in the address takes the place of one that was kept", async () => {
  sessionStorage.setItem("headscope-token", "old");
  history.replaceState(null, "", "/?token=new");
  await serve(element);
  await serve(element);
  expect(opened).toEqual(["new", "new"]);
});

test("where storage is forbidden the page opens all the same", async () => {
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("", "SecurityError");
  });
  vi.spyOn(Storage.prototype, "getItem").mockImplementation(() => {
    throw new DOMException("", "SecurityError");
  });
  history.replaceState(null, "", "/?token=abc");
  await serve(element);
  await serve(element);
  expect(opened).toEqual(["abc", ""]);
});
