import { mountFailure, NOTEBOOK_HEIGHT, placeIn } from "../parts/mount";
import { followHostTheme } from "../parts/theme";
import { httpSource, takeToken, type WidgetModel, widgetSource } from "../source/source";
import { pageSelection, type Selection } from "../state/selection";
import { mountApp, openPage } from "./show";

// The shells that ask for their data: anywidget's module has a default export, the server's page calls `serve`.

/** The page of `headscope serve`. */
export async function serve(element: HTMLElement): Promise<void> {
  const token = takeToken();
  await openPage(element, async () => {
    const source = await httpSource("./", token);
    // The server sends the page itself to everyone, so without the title.
    document.title = source.header.title;
    return source;
  });
}

// The live widget of a notebook, in the form that anywidget wants; the selection is a traitlet.

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const place = placeIn(el);
  try {
    return show(model, place);
  } catch (error) {
    mountFailure(place, error);
    return () => place.remove();
  }
}

function show(model: WidgetModel, place: HTMLElement): () => void {
  const source = widgetSource(model);
  const given = model.get("selection") as Partial<Selection>;
  let known = JSON.stringify({ ...pageSelection(source.header), ...given });
  const view = mountApp(place, {
    source,
    selection: given,
    height: NOTEBOOK_HEIGHT,
    followTheme: followHostTheme,
    onSelection: (selection) => {
      const text = JSON.stringify(selection);
      if (text === known) return;
      known = text;
      model.set("selection", selection);
      model.save_changes();
    },
  });
  const onChange = () => {
    const selection = model.get("selection") as Partial<Selection>;
    const text = JSON.stringify(selection);
    if (text === known) return;
    known = text;
    view.update({ selection });
  };
  model.on("change:selection", onChange);
  return () => {
    model.off("change:selection", onChange);
    view.destroy();
    source.close();
    place.remove();
  };
}

export default { render };
