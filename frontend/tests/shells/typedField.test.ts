// @vitest-environment jsdom
import { h, render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import { TypedField } from "../../src/views/live/Answering";

const root = document.createElement("div");
afterEach(() => render(null, root));

/** Draws the field anew, as when an answer comes while somebody types. */
function draw(value: string, onTake: (text: string) => boolean): HTMLInputElement {
  const words = { label: "heads", title: "Which heads", placeholder: "all" };
  render(h(TypedField, { ...words, mark: { "data-numbers": "heads" }, value, wrong: false, onTake }), root);
  return root.querySelector("input") as HTMLInputElement;
}

function type(input: HTMLInputElement, text: string, event: "input" | "change"): void {
  input.value = text;
  input.dispatchEvent(new Event(event, { bubbles: true }));
}

test("what is typed stays while all around it is drawn again", async () => {
  const onTake = vi.fn(() => true);
  const input = draw("0", onTake);
  type(input, "1-", "input");
  draw("0", onTake);
  expect([draw("3", onTake).value, onTake.mock.calls.length]).toEqual(["1-", 0]);
  type(input, "1-2", "change");
  expect(onTake).toHaveBeenCalledWith("1-2");
  await vi.waitFor(() => expect(draw("1-2", onTake).value).toBe("1-2"));
  await vi.waitFor(() => expect(draw("4", onTake).value).toBe("4"));
});

test("what is not taken stays to be mended", async () => {
  const input = draw("0", () => false);
  type(input, "one", "input");
  type(input, "one", "change");
  await Promise.resolve();
  expect(draw("0", () => false).value).toBe("one");
});
