import { effect } from "@preact/signals-core";
import { mountFailure, mounting } from "../parts/mount";
import { followHostTheme } from "../parts/theme";
import { PageError } from "../source/errors";
import { type Asked, httpModel } from "../source/model";
import type { WidgetModel } from "../source/widget";
import { isSame, liveState } from "../state/live";
import { writeAsked } from "../state/liveAddress";
import type { Selection } from "../state/selection";
import { styles } from "../views/app/styles";
import { liveApp } from "../views/live/LiveBar";
import { liveStyles } from "../views/live/styles";
import { firstAnswer, loadedFacts, randomName } from "./modelStart";

// The page of a model as a widget of a notebook, in the form that anywidget wants: its kernel answers.

const HEIGHT = 440;

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const place = el.ownerDocument.createElement("div");
  el.append(place);
  const kernel = kernelFetch(model);
  const stops = [kernel.close, () => place.remove()];
  // Notebooks scroll their output on keys and wheel that the views want for themselves, and have keys of their own.
  for (const event of ["keydown", "wheel"]) place.addEventListener(event, (heard) => heard.stopPropagation());
  start(model, place, kernel.ask).then(
    (stop) => stops.unshift(stop),
    (error: unknown) => mountFailure(place, error, styles),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

async function start(model: WidgetModel, place: HTMLElement, ask: ReturnType<typeof kernelFetch>["ask"]) {
  const asks = httpModel("", "", randomName(), ask);
  const facts = await loadedFacts(asks, place);
  const live = liveState(asks, facts, await firstAnswer(asks, facts, place, linkTo(askedOf(model))));
  let shown = "";
  const view = mounting(liveApp(live, place), `${styles}${liveStyles}`)(place, {
    source: live.answer.peek().source,
    selection: { view: "overview", ...(model.get("selection") as Partial<Selection>) },
    height: HEIGHT,
    followTheme: followHostTheme,
    onSelection: (selection) => {
      shown = JSON.stringify(selection);
      tell({ selection });
    },
  });
  /** Lets Python know what is shown. */
  function tell(values: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  }
  const stopTelling = effect(() => {
    const { asked, opening } = live.answer.value;
    tell({ asked: withoutFiles(asked), _shown_id: opening.id });
  });
  const onAsked = () => {
    const asked = askedOf(model);
    if (asked && !isSame(asked, withoutFiles(live.asked.peek()))) live.go(asked);
  };
  const onSelection = () => {
    const selection = model.get("selection") as Partial<Selection>;
    if (JSON.stringify(selection) !== shown) view.update({ selection });
  };
  model.on("change:asked", onAsked);
  model.on("change:selection", onSelection);
  return () => {
    model.off("change:asked", onAsked);
    model.off("change:selection", onSelection);
    stopTelling();
    live.destroy();
    view.destroy();
  };
}

/** What Python asks; null as long as it asks nothing. */
function askedOf(model: WidgetModel): Asked | null {
  const { input, changes } = (model.get("asked") ?? {}) as Partial<Asked>;
  return input ? { input, changes: changes ?? [] } : null;
}

function linkTo(asked: Asked | null): string {
  return asked ? writeAsked(asked) : "";
}

/** A picture or a sound is megabytes, which a notebook would keep. */
function withoutFiles({ input, changes }: Asked): Asked {
  const { image: _, audio: __, ...rest } = input;
  return { input: rest, changes };
}

export default { render };

/** What the kernel sends of an answer; its only buffer holds the next bytes. */
interface Part {
  readonly type: "answer";
  readonly id: string;
  readonly status: number;
  readonly more: boolean;
}

interface Waiting {
  begin(answer: Response): void;
  stream: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  begun: boolean;
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** `fetch` for a widget: what a page asks its server, the kernel is asked in messages. */
function kernelFetch(model: WidgetModel) {
  const waiting = new Map<string, Waiting>();
  const onMessage = (part: Part, buffers: readonly DataView<ArrayBuffer>[]) => {
    const asked = part?.type === "answer" ? waiting.get(part.id) : undefined;
    if (!asked) return;
    const [{ buffer, byteOffset, byteLength }] = buffers;
    if (byteLength > 0) asked.stream.enqueue(new Uint8Array(buffer, byteOffset, byteLength));
    if (!part.more) {
      asked.stream.close();
      waiting.delete(part.id);
    }
    if (!asked.begun) asked.begin(new Response(asked.body, { status: part.status }));
    asked.begun = true;
  };
  model.on("msg:custom", onMessage);
  const ask = (address: string, { body, signal }: RequestInit = {}) =>
    new Promise<Response>((begin, refuse) => {
      // Several views of one model hear all answers, so an id must be nobody else's.
      const id = `${Date.now()}-${Math.random()}`;
      let controller: Waiting["stream"] | undefined;
      const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
        start: (given) => (controller = given),
      });
      if (!controller) throw new PageError("This browser cannot read streams.");
      const asked: Waiting = { begin, stream: controller, begun: false, body: stream };
      waiting.set(id, asked);
      signal?.addEventListener("abort", () => {
        if (!waiting.delete(id)) return;
        model.send({ type: "stop", id });
        const ended = new DOMException("No longer wanted", "AbortError");
        if (asked.begun) asked.stream.error(ended);
        else refuse(ended);
      });
      model.send({ type: "ask", id, path: address, ...(body !== undefined && { body }) });
    });
  return { ask, close: () => model.off("msg:custom", onMessage) };
}
