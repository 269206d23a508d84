import type { ComponentType } from "preact";
import type { Live } from "../../state/live";
import { Answering } from "./Answering";
import { Keep } from "./Keep";
import type { LiveParts } from "./LiveBar";
import { Matters } from "./Matters";
import { Past } from "./Past";
import { Sketch } from "./Sketch";
import { TwoTexts } from "./TwoTexts";
import { Writing } from "./Writing";

interface PanelFacts {
  readonly name: string;
  readonly words: string;
  readonly title: string;
  readonly Panel: ComponentType<LiveParts>;
}

/** What else can be asked of a model: only what it can answer. */
export function panelsOf({ facts }: Live): readonly PanelFacts[] {
  const all: readonly (PanelFacts & { readonly there?: boolean })[] = [
    {
      name: "answer",
      words: "answer",
      title: "Answer the text, as a question about the picture, and see where each word looked",
      Panel: Answering,
      there: facts.answers,
    },
    { name: "write", words: "write on", title: "The model continues the text", Panel: Writing, there: facts.writes },
    {
      name: "matters",
      words: "which heads matter?",
      title: "Which heads the guess rests on",
      Panel: Matters,
      there: facts.matters.length > 0,
    },
    { name: "sketch", words: "sketch", title: "Draw a pattern and find the heads that look like it", Panel: Sketch },
    {
      name: "two",
      words: facts.beside ? "two texts, two models" : "two texts",
      title: "The same heads on a second text or in a second model, side by side",
      Panel: TwoTexts,
      there: facts.fields.includes("text"),
    },
    { name: "history", words: "history", title: "What was asked in this tab", Panel: Past },
    { name: "keep", words: "keep", title: "The record or a page as a file, and the line of Python", Panel: Keep },
  ];
  return all.filter(({ there }) => there !== false);
}
