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
export interface FromFrame {
  readonly headscope: "frame";
  readonly height: number;
}

/** What a notebook tells a frame: whether it is dark, or null where it does not know. */
export interface ToFrame {
  readonly headscope: "host";
  readonly dark: boolean | null;
}
