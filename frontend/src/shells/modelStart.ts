import type { LiveFacts, LiveInput, LiveLooking } from "../contract/live";
import { DEFAULTS } from "../contract/values";
import { mountChoice, mountMessage } from "../parts/mount";
import { PageError } from "../source/errors";
import { type Answered, type Asked, type Model, ModelError } from "../source/model";
import { readFragment } from "../state/fragment";
import { readAsked } from "../state/liveAddress";
import { styles } from "../views/app/styles";
import { FILES, FileField } from "../views/live/Fields";
import { liveStyles } from "../views/live/styles";

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
    mountMessage(element, `Loading ${facts.name || "the model"} …`, styles);
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
    return askWithFile(model, facts, element, { asked, looking });
  }
}

interface FirstQuestion {
  readonly asked: Asked;
  readonly looking: LiveLooking;
}

async function askWithFile(model: Model, facts: LiveFacts, element: HTMLElement, { asked, looking }: FirstQuestion) {
  const input = { ...asked.input, ...(await chosenInput(facts, element)) };
  return model.ask({ ...asked, input }, looking);
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
  return { [name]: await mountChoice<typeof given>(element, FileField, given, `${styles}${liveStyles}`) };
}
