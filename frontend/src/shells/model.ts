import { effect } from "@preact/signals-core";
import { DEFAULTS } from "../../contract/values";
import type { LiveFacts, LiveInput } from "../../types/live";
import { mountChoice, mountFailure, mounting, mountMessage, mountWidget, placeIn } from "../parts/mount";
import { type Answered, type Asked, httpModel, type Model } from "../source/model";
import { kernelFetch, ModelError, PageError, takeToken, type WidgetModel } from "../source/source";
import { readAsked, writeAsked } from "../state/changes";
import { isSame, type Live, liveState } from "../state/live";
import { pageSelection, readFragment, type Selection } from "../state/selection";
import { FILES, FileField } from "../views/live/Fields";
import { liveApp } from "../views/live/LiveBar";
import { type Extra, openPage } from "./show";

// The page of `headscope serve --model`: all views, and a model that answers.

/** The page of a model. */
export async function serve(element: HTMLElement): Promise<void> {
  const model = httpModel("./", takeToken(), randomName());
  let live: Live | undefined;
  await openPage(
    element,
    async () => {
      const facts = await loadedFacts(model, element);
      document.title = facts.name;
      const first = await firstAnswer(model, facts, element, location.hash.slice(1));
      live = liveState(model, facts, first);
      return first.source;
    },
    () => extraOf(live as Live),
  );
}

/** How the page of a model keeps its text and its changes in the address. */
function extraOf(live: Live): Extra {
  const { header } = live.answer.peek().source;
  return {
    mount: mounting(liveApp(live)),
    // Not those of the first record: a link is read again beside another one.
    defaults: { ...pageSelection(header), ...DEFAULTS, view: "overview" },
    write: () => writeAsked(live.answer.value.asked),
    isStep: live.takeStep,
    follow(fragment, selection) {
      const asked = readAsked(fragment);
      if (!asked || isSame(asked, live.asked.peek())) return false;
      live.go(asked, selection);
      return true;
    },
  };
}

// How a page of a model begins, whoever answers it: until the model is there, and what is shown first.

/** What is read where neither the address nor the server gives a text. */
const FIRST_TEXT = "The cat sat on the mat because it was tired.";
/** Milliseconds between two looks whether the model has been loaded. */
const LOOK_AGAIN = 400;

/** Crypto names are only there in secure contexts; a name that nobody else has is all that is wanted. */
export function randomName(): string {
  return `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
}

export async function loadedFacts(model: Model, element: HTMLElement): Promise<LiveFacts> {
  for (;;) {
    const facts = await model.facts();
    if (facts.failed) throw new PageError(facts.failed);
    if (!facts.loading) return facts;
    mountMessage(element, `Loading ${facts.name || "the model"} …`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
  }
}

export async function firstAnswer(
  model: Model,
  facts: LiveFacts,
  element: HTMLElement,
  fragment: string,
): Promise<Answered> {
  const linked = readAsked(fragment);
  const { fields } = facts;
  const alone = linked !== null || fields.includes("text");
  const input = linked?.input ?? firstInput(facts, alone ? {} : await chosenInput(facts, element));
  const asked: Asked = { input, changes: linked?.changes ?? [] };
  const { view, layer, heads, stack, quantity } = readFragment(fragment, {
    ...DEFAULTS,
    view: "overview",
    stack: "",
    layer: 0,
  });
  const looking = { view, layer, quantity, ...(stack && { stack }), ...(heads && { heads: [...heads] }) };
  try {
    return await model.ask(asked, looking);
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    // Changes of a link may be of another model: the text is shown all the same.
    if (asked.changes.length > 0) return model.ask({ ...asked, changes: [] }, looking);
    if (!alone || !(fields.includes("image") || fields.includes("audio"))) throw error;
    // A model such as CLIP reads no text without a picture; a link never holds one.
    return model.ask({ ...asked, input: { ...input, ...(await chosenInput(facts, element)) } }, looking);
  }
}

/** What is read first where the address says nothing; a model of pictures or sounds is given one. */
function firstInput({ text, messages, fields }: LiveFacts, chosen: Partial<LiveInput>): LiveInput {
  if (messages.length > 0) return { messages, ...chosen };
  return fields.includes("text") ? { text: text || FIRST_TEXT, ...chosen } : chosen;
}

/** A picture or a sound that the reader chooses before anything can be shown. */
async function chosenInput(facts: LiveFacts, element: HTMLElement): Promise<Partial<LiveInput>> {
  const name: "image" | "audio" = facts.fields.includes("image") ? "image" : "audio";
  const lead = `${facts.name} reads ${FILES[name].one}. Choose one:`;
  const given = { name, facts, lead } as const;
  return { [name]: await mountChoice<typeof given>(element, FileField, given) };
}

// The page of a model as a widget of a notebook, in the form that anywidget wants: its kernel answers.

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const place = placeIn(el);
  const kernel = kernelFetch(model);
  const stops = [kernel.close, () => place.remove()];
  start(model, place, kernel.ask).then(
    (stop) => stops.unshift(stop),
    (error: unknown) => mountFailure(place, error),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

async function start(model: WidgetModel, place: HTMLElement, ask: ReturnType<typeof kernelFetch>["ask"]) {
  const asks = httpModel("", "", randomName(), ask);
  const facts = await loadedFacts(asks, place);
  const wanted = askedOf(model);
  const live = liveState(asks, facts, await firstAnswer(asks, facts, place, wanted ? writeAsked(wanted) : ""));
  const stopView = mountWidget(mounting(liveApp(live, place)), place, model, {
    source: live.answer.peek().source,
    selection: { view: "overview", ...(model.get("selection") as Partial<Selection>) },
  });
  const stopTelling = effect(() => {
    const { asked, opening } = live.answer.value;
    // Lets Python know what is shown.
    model.set("asked", withoutFiles(asked));
    model.set("_shown_id", opening.id);
    model.save_changes();
  });
  const onAsked = () => {
    const asked = askedOf(model);
    if (asked && !isSame(asked, withoutFiles(live.asked.peek()))) live.go(asked);
  };
  model.on("change:asked", onAsked);
  return () => {
    model.off("change:asked", onAsked);
    stopTelling();
    live.destroy();
    stopView();
  };
}

/** What Python asks; null as long as it asks nothing. */
function askedOf(model: WidgetModel): Asked | null {
  const { input, changes } = (model.get("asked") ?? {}) as Partial<Asked>;
  return input ? { input, changes: changes ?? [] } : null;
}

/** A picture or a sound is megabytes, which a notebook would keep. */
function withoutFiles({ input, changes }: Asked): Asked {
  const { image: _, audio: __, ...rest } = input;
  return { input: rest, changes };
}

export default { render };
