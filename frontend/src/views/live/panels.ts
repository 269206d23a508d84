import type { ComponentType } from "preact";
import type { Live } from "../../state/live";
import type { LiveParts } from "./LiveBar";

interface PanelFacts {
  readonly name: string;
  readonly words: string;
  readonly title: string;
  readonly Panel: ComponentType<LiveParts>;
}

/** What else can be asked of a model: only what it can answer. */
export function panelsOf(_: Live): readonly PanelFacts[] {
  return [];
}
