import { mountFailure, mountWidget, placeIn } from "../parts/mount";
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
  const selection = model.get("selection") as Partial<Selection>;
  const known = JSON.stringify({ ...pageSelection(source.header), ...selection });
  const stop = mountWidget(mountApp, place, model, { source, selection }, known);
  return () => {
    stop();
    source.close();
    place.remove();
  };
}

export default { render };
