import { type MountedView, mountFailure, mounting } from "../parts/mount";
import { followParentTheme, isFramed, reportHeight } from "../parts/theme";
import type { Source } from "../source/source";
import { isStep, pageSelection, readFragment, type Selection, writeFragment } from "../state/selection";
import { App } from "../views/app/App";

// All views in a page of their own, the selection in the URL fragment.

/** Height of everything on a page but the picture. */
const AROUND_PICTURE = 232;
const LOWEST_PICTURE = 340;
/** Milliseconds between two addresses of one movement: browsers refuse too many. */
const MOST_OFTEN = 200;
/** Height of the picture in a frame, which is as high as what it shows. */
const FRAMED_PICTURE = 440;

export const mountApp = /* @__PURE__ */ mounting(App);

/** What stands in the address beside the selection, such as a text that a model reads. */
export interface Extra {
  readonly mount: typeof mountApp;
  /** What a link says nothing of is as in here. */
  readonly defaults: Selection;
  /** Its parts of the fragment, empty for none; called where a change of it is followed. */
  write(): string;
  /** Whether it was changed by a step that can be undone. */
  isStep(): boolean;
  /** Shows what another fragment says, with its selection; false where only the selection is another. */
  follow(fragment: string, selection: Selection): boolean;
}

/** Shows the views in the element, or what is wrong with the source. */
export async function openPage(
  element: HTMLElement,
  open: () => Source | Promise<Source>,
  extra?: () => Extra,
): Promise<void> {
  document.body.style.margin = "0";
  if (isFramed()) reportHeight(element);
  else element.style.minHeight = "100vh";
  try {
    showPage(element, await open(), extra?.());
  } catch (error) {
    mountFailure(element, error);
  }
}

function showPage(element: HTMLElement, source: Source, extra?: Extra): MountedView {
  const defaults = extra?.defaults ?? pageSelection(source.header);
  let written = location.hash.slice(1);
  let shown = readFragment(written, defaults);
  /** The fragment of the address as we wrote it, or as we were told of it last. */
  let address = written;
  /** How many steps of ours the browser can go back. */
  let steps = 0;
  let latest = -MOST_OFTEN;
  let later: ReturnType<typeof setTimeout> | undefined;
  const view = (extra?.mount ?? mountApp)(element, {
    source,
    selection: shown,
    height: pictureHeight(),
    keys: document,
    ...(isFramed() && { followTheme: followParentTheme }),
    // A frame shares its history with the page around it.
    ...(!isFramed() && {
      undo: (forward: boolean) => {
        if (forward ? stepNow() < steps : stepNow() > 0) history.go(forward ? 1 : -1);
      },
    }),
    // Scroll bars of the page belong to the document, not to the view.
    onDark: (dark) => (document.documentElement.style.colorScheme = dark ? "dark" : "light"),
    onSelection: (selection) => {
      const fragment = [writeFragment(selection, defaults), extra?.write()].filter(Boolean).join("&");
      clearTimeout(later);
      const isNew = !isFramed() && (isStep(shown, selection) || extra?.isStep() === true);
      const wait = isNew ? 0 : latest + MOST_OFTEN - performance.now();
      const write = () => {
        const there = location.hash.slice(1);
        // Somebody has just changed the address: what is shown will follow it, and must not be written over it.
        if (fragment === there || there !== address) return;
        if (!isNew) latest = performance.now();
        if (isNew) steps = stepNow() + 1;
        writeAddress(fragment, isNew ? steps : null);
        address = location.hash.slice(1);
      };
      if (wait > 0) later = setTimeout(write, wait);
      else write();
      [written, shown] = [fragment, selection];
    },
  });
  addEventListener("resize", () => view.update({ height: pictureHeight() }));
  addEventListener("hashchange", () => {
    const fragment = location.hash.slice(1);
    address = fragment;
    if (fragment === written) return;
    // As it is shown already when it is reported, the address is left alone.
    [written, shown] = [fragment, readFragment(fragment, defaults)];
    if (!extra?.follow(fragment, shown)) view.update({ selection: shown });
  });
  return view;
}

function pictureHeight(): number {
  return isFramed() ? FRAMED_PICTURE : Math.max(LOWEST_PICTURE, innerHeight - AROUND_PICTURE);
}

/** Which of our steps the address is at. */
function stepNow(): number {
  return (history.state as { headscopeStep?: number } | null)?.headscopeStep ?? 0;
}

/** Writes the fragment: of a new step, so that Back leads to the one before, or in place of the one that is there. */
function writeAddress(fragment: string, step: number | null): void {
  const address = fragment ? `#${fragment}` : location.pathname + location.search;
  try {
    if (step === null) history.replaceState(history.state, "", address);
    else history.pushState({ headscopeStep: step }, "", address);
  } catch (error) {
    // Some browsers forbid this to files and sandboxed frames; the fragment itself can always be set.
    if (!(error instanceof DOMException) || error.name !== "SecurityError") throw error;
    location.hash = fragment;
  }
}
