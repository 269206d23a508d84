import { type MountedView, mountFailure } from "../parts/mount";
import type { Source } from "../source/source";
import { readFragment, writeFragment } from "../state/fragment";
import { pageSelection } from "../state/selection";
import { mountApp } from "../views/app/mount";
import { styles } from "../views/app/styles";
import { followParentTheme, isFramed, reportHeight } from "./framed";

// All views in a page of their own, the selection in the URL fragment.

/** Height of everything on a page but the picture. */
const AROUND_PICTURE = 232;
const LOWEST_PICTURE = 340;
/** Height of the picture in a frame, which is as high as what it shows. */
const FRAMED_PICTURE = 440;

/** Shows the views in the element, or what is wrong with the source. */
export async function openPage(element: HTMLElement, open: () => Source | Promise<Source>): Promise<void> {
  document.body.style.margin = "0";
  if (isFramed()) reportHeight(element);
  else element.style.minHeight = "100vh";
  try {
    showPage(element, await open());
  } catch (error) {
    mountFailure(element, error, styles);
  }
}

function showPage(element: HTMLElement, source: Source): MountedView {
  const defaults = pageSelection(source.header);
  let written = location.hash.slice(1);
  const view = mountApp(element, {
    source,
    selection: readFragment(written, defaults),
    height: pictureHeight(),
    keys: document,
    ...(isFramed() && { followTheme: followParentTheme }),
    // Scroll bars of the page belong to the document, not to the view.
    onDark: (dark) => {
      document.documentElement.style.colorScheme = dark ? "dark" : "light";
    },
    onSelection: (selection) => {
      const fragment = writeFragment(selection, defaults);
      if (fragment !== written) replaceFragment(fragment);
      written = fragment;
    },
  });
  addEventListener("resize", () => view.update({ height: pictureHeight() }));
  addEventListener("hashchange", () => {
    const fragment = location.hash.slice(1);
    if (fragment === written) return;
    written = fragment;
    view.update({ selection: readFragment(fragment, defaults) });
  });
  return view;
}

function pictureHeight(): number {
  return isFramed() ? FRAMED_PICTURE : Math.max(LOWEST_PICTURE, innerHeight - AROUND_PICTURE);
}

function replaceFragment(fragment: string): void {
  try {
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  } catch (error) {
    // Some browsers forbid this to files and sandboxed frames; the fragment itself can always be set.
    if (!(error instanceof DOMException) || error.name !== "SecurityError") throw error;
    location.hash = fragment;
  }
}
