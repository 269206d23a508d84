import { type MountedView, mountFailure } from "../parts/mount";
import { inlineSource } from "../source/inline";
import type { Source } from "../source/source";
import { readFragment, writeFragment } from "../state/fragment";
import { pageSelection } from "../state/selection";
import { mountApp } from "../views/app/mount";
import { styles } from "../views/app/styles";

// The self-contained page: data in script elements, the selection in the URL fragment.

/** Height of everything on a page but the picture. */
const AROUND_PICTURE = 232;
const LOWEST_PICTURE = 340;

const element = document.getElementById("headscope");
if (element) openPage(element);

function openPage(element: HTMLElement): void {
  document.body.style.margin = "0";
  element.style.minHeight = "100vh";
  try {
    showPage(element, inlineSource(document));
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
  return Math.max(LOWEST_PICTURE, innerHeight - AROUND_PICTURE);
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
