/** Reports whether it is dark around a view, now and whenever that changes, until stopped. */
export type FollowTheme = (report: (dark: boolean) => void) => () => void;

export const followSystemTheme: FollowTheme = (report) => {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => report(query.matches);
  tell();
  query.addEventListener("change", tell);
  return () => query.removeEventListener("change", tell);
};

/** Whether a notebook says of itself that it is dark; null where it says nothing. */
export function hostDark(document: Document): boolean | null {
  const { body, documentElement: root } = document;
  const jupyter = body.dataset.jpThemeLight;
  if (jupyter) return jupyter === "false";
  const said = [...body.classList, ...root.classList];
  if (said.some((name) => LIGHT.includes(name))) return false;
  return said.some((name) => DARK.includes(name)) ? true : null;
}

// Class names of the body: VS Code's (high contrast light has both of its names), then those of marimo and others.
const LIGHT: readonly string[] = ["vscode-light", "vscode-high-contrast-light", "light", "light-theme"];
const DARK: readonly string[] = ["vscode-dark", "vscode-high-contrast", "dark", "dark-theme"];

/** Calls back whenever a notebook may have changed its colours. */
export function watchHost(document: Document, changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  for (const element of [document.body, document.documentElement]) {
    observer.observe(element, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
  }
  return () => observer.disconnect();
}

/** What is said around a view, or by the system where that is null; `watch` tells of it, and gives what ends that. */
export function orSystem(watch: (said: (dark: boolean | null) => void) => () => void): FollowTheme {
  return (report) => {
    let [around, system] = [null as boolean | null, false];
    const tell = () => report(around ?? system);
    const stop = watch((dark) => {
      around = dark;
      tell();
    });
    const stopSystem = followSystemTheme((dark) => {
      system = dark;
      tell();
    });
    return () => {
      stop();
      stopSystem();
    };
  };
}

/** The colours of the notebook, or of the system where the notebook says nothing. */
export const followHostTheme = /* @__PURE__ */ orSystem((said) => {
  said(hostDark(document));
  return watchHost(document, () => said(hostDark(document)));
});

/** What a page in a frame tells the notebook around it: the height that it wants. */
export type FromFrame = { readonly headscope: "frame"; readonly height: number };

/** What a notebook tells a frame: whether it is dark, or null where it does not know. */
export type ToFrame = { readonly headscope: "host"; readonly dark: boolean | null };

// A page inside a frame of a notebook: its height follows from what it shows, its colours from what is around it.

export function isFramed(): boolean {
  return window.parent !== window;
}

/** Tells the notebook how much height the element takes, now and whenever that changes. */
export function reportHeight(element: HTMLElement): void {
  const tell = () => {
    const message: FromFrame = { headscope: "frame", height: Math.ceil(element.getBoundingClientRect().height) };
    window.parent.postMessage(message, "*");
  };
  new ResizeObserver(tell).observe(element);
  // Observers are silent in a frame that is out of sight, which would jump when it comes into sight.
  for (const delay of OUT_OF_SIGHT) setTimeout(tell, delay);
}

/** Milliseconds until what a page shows first has been laid out, on fast and slow machines. */
const OUT_OF_SIGHT: readonly number[] = [100, 1000, 4000];

/** The colours of the notebook around the frame, or of the system where it says nothing. */
export const followParentTheme = /* @__PURE__ */ orSystem((said) => {
  const onMessage = ({ data, source }: MessageEvent<ToFrame | null>) => {
    if (source !== window.parent || data?.headscope !== "host") return;
    said(typeof data.dark === "boolean" ? data.dark : null);
  };
  addEventListener("message", onMessage);
  return () => removeEventListener("message", onMessage);
});

/** A place inside a shadow root, where styles of the host page and ours do not meet. */
export function styledRoot(element: HTMLElement, styles: string): HTMLElement {
  const shadow = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = styles;
  const root = document.createElement("div");
  root.className = "root";
  shadow.replaceChildren(style, root);
  return root;
}
