// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import widget from "../../src/shells/live";
import { type WidgetModel, widgetSource } from "../../src/source/source";
import { fakeCanvas } from "../canvas";
import { gzip } from "../examples/inline";
import { examplePage } from "../examples/page";
import { soon } from "../soon";

beforeEach(() => {
  fakeCanvas();
  document.body.innerHTML = "";
});

afterEach(() => {
  vi.restoreAllMocks();
  document.body.removeAttribute("data-jp-theme-light");
});

const { page, chunks } = examplePage();

type Heard = (...heard: never[]) => void;

/** A model as anywidget gives it, with a kernel that answers from the example. */
class FakeModel implements WidgetModel {
  readonly state: Record<string, unknown> = { _header: page, selection: { ...page.selection } };
  readonly asked: string[] = [];
  saves = 0;
  answering = true;
  readonly #heard = new Map<string, Set<Heard>>();

  get(name: string) {
    return this.state[name];
  }
  set(name: string, value: unknown) {
    this.state[name] = value;
  }
  save_changes() {
    this.saves += 1;
  }
  on(event: string, heard: Heard) {
    this.#heard.set(event, (this.#heard.get(event) ?? new Set()).add(heard));
  }
  off(event: string, heard: Heard) {
    this.#heard.get(event)?.delete(heard);
  }
  tell(event: string, ...told: unknown[]) {
    for (const heard of this.#heard.get(event) ?? []) heard(...(told as never[]));
  }
  get listeners() {
    return [...this.#heard.values()].reduce((count, heard) => count + heard.size, 0);
  }
  async send({ id, path }: { id: string; path: string }) {
    const name = path.replace("chunk/", "");
    this.asked.push(name);
    const bytes = chunks.get(name);
    if (!this.answering) return;
    const packed = bytes ? await gzip(bytes) : new TextEncoder().encode(`This view holds no data “${name}”.`);
    // As in a notebook, the bytes are a part of a larger message.
    const whole = new Uint8Array(packed.length + 7);
    whole.set(packed, 5);
    const buffers = [new DataView(whole.buffer, 5, packed.length)];
    const answer = { type: "answer", status: bytes ? 200 : 400, more: false };
    this.tell("msg:custom", { ...answer, id: "another", status: 400 }, buffers);
    this.tell("msg:custom", { ...answer, id }, buffers);
  }
}

async function opened(model = new FakeModel()) {
  const el = document.createElement("div");
  document.body.append(el);
  const close = widget.render({ model, el });
  const root = el.firstElementChild?.shadowRoot as ShadowRoot;
  const view = await soon(() => {
    const found = root.querySelector<HTMLElement>("[data-ready]");
    if (!found) throw new Error("not drawn yet");
    return found;
  });
  return { model, el, root, view, close };
}

test("it draws what the kernel sends, and asks for no layer that is far away", async () => {
  const { model, view } = await opened();
  expect(view.dataset).toMatchObject({ stack: "self", layer: "0", heads: "0" });
  expect(new Set(model.asked)).not.toContain("weights/self/5");
  expect(model.saves).toBe(0);
});

test("what the reader chooses is saved, once for each change", async () => {
  const { model, root, view } = await opened();
  root.querySelector("[data-ready]")?.dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true }));
  await soon(() => expect(view.dataset.layer).toBe("2"));
  expect(model.state.selection).toEqual({ ...page.selection, layer: 2, heads: [0] });
  expect(model.saves).toBe(1);
});

test("what Python sets is shown, and not sent back", async () => {
  const { model, view } = await opened();
  model.state.selection = { ...page.selection, layer: 5, heads: [1] };
  model.tell("change:selection");
  await soon(() => expect(view.dataset).toMatchObject({ layer: "5", heads: "1" }));
  expect(model.saves).toBe(0);
});

test("two views of one model show the same", async () => {
  const first = await opened();
  const second = await opened(first.model);
  first.root.querySelector<HTMLElement>('[data-tile="0-1"]')?.click();
  first.model.tell("change:selection");
  await soon(() => expect(second.view.dataset.heads).toBe("1"));
  expect(first.model.saves).toBe(1);
});

test("colours are those of the notebook", async () => {
  document.body.dataset.jpThemeLight = "false";
  const { view } = await opened();
  await soon(() => expect(view.dataset.theme).toBe("dark"));
  document.body.dataset.jpThemeLight = "true";
  await soon(() => expect(view.dataset.theme).toBe("light"));
});

test("keys and wheel stay inside", async () => {
  const { el, view } = await opened();
  const heard = vi.fn();
  el.addEventListener("keydown", heard);
  el.addEventListener("wheel", heard);
  view.dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true, composed: true }));
  view.dispatchEvent(new Event("wheel", { bubbles: true, composed: true }));
  expect(heard).not.toHaveBeenCalled();
  await soon(() => expect(view.dataset.layer).toBe("2"));
});

test("a view that is closed leaves nothing behind", async () => {
  const { model, el, close } = await opened();
  close();
  expect(model.listeners).toBe(0);
  expect(el.childElementCount).toBe(0);
});

test("a header of another version is said, not drawn", async () => {
  const model = new FakeModel();
  model.state._header = { ...page, format: 3 };
  const el = document.createElement("div");
  const close = widget.render({ model, el });
  expect(el.firstElementChild?.shadowRoot?.querySelector("[data-failure]")?.textContent).toMatch(/format 3/);
  close();
});

test("a chunk that is not there, and a kernel that is gone, are said", async () => {
  const model = new FakeModel();
  const source = widgetSource(model, 20);
  await expect(source.chunk("weights/gone")).rejects.toThrow("This view holds no data “weights/gone”.");
  model.answering = false;
  await expect(source.chunk("weights/self/0")).rejects.toThrow("kernel does not answer. Run the cell again.");
});
