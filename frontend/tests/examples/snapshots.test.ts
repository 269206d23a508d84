// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fakeCanvas } from "../canvas";
import { soon } from "../soon";
import { EXAMPLES } from "./named";
import { outline } from "./outline";
import { exampleSource } from "./page";

// What every example says, as files: a change of a view is seen in the diff. `npx vitest run -u` writes them anew.

beforeEach(() => {
  fakeCanvas(600);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(400);
  document.body.innerHTML = '<div id="place"></div>';
});

afterEach(() => vi.restoreAllMocks());

test.each(Object.keys(EXAMPLES))("%s", async (name) => {
  const { mountApp } = await import("../../src/shells/show");
  const place = document.getElementById("place") as HTMLElement;
  const { make, selection } = EXAMPLES[name];
  const source = exampleSource(make());
  const view = mountApp(place, { source, selection, height: 400 });
  const root = place.shadowRoot as ShadowRoot;
  await soon(() => {
    expect(root.querySelector("[data-ready]")).not.toBeNull();
    expect(root.querySelector("[data-loading]")).toBeNull();
  });
  await new Promise((done) => setTimeout(done, 50));
  await expect(`${outline(root)}\n`).toMatchFileSnapshot(`snapshots/${name}.txt`);
  view.destroy();
});
