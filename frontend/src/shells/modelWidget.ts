import { effect } from "@preact/signals-core";
import { mountFailure, mounting } from "../parts/mount";
import { kernelFetch } from "../source/kernel";
import { type Asked, httpModel } from "../source/model";
import type { WidgetModel } from "../source/widget";
import { isSame, liveState } from "../state/live";
import { writeAsked } from "../state/liveAddress";
import type { Selection } from "../state/selection";
import { styles } from "../views/app/styles";
import { liveApp } from "../views/live/LiveApp";
import { liveStyles } from "../views/live/styles";
import { followHostTheme } from "./hostTheme";
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
