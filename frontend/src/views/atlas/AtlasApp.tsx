import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { marksOf } from "../../draw/marks";
import { followSystemTheme } from "../../parts/theme";
import type { AtlasIndex, AtlasSource } from "../../source/atlas";
import { bytesOf, readPlace } from "../../state/atlas";
import { headColors } from "./colors";
import { HeadPage } from "./HeadPage";
import { MapPage } from "./MapPage";
import type { AtlasView } from "./parts";

/** The page of an atlas: the map of all heads, or one head, as the address says. */
export function AtlasApp({ source, host }: { source: AtlasSource; host: HTMLElement }) {
  const [index, setIndex] = useState<AtlasIndex | null>(null);
  const [failure, setFailure] = useState("");
  const [place, setPlace] = useState(() => readPlace(location.hash));
  const dark = useDark(host);
  useEffect(() => {
    source.index().then(setIndex, (error: Error) => setFailure(error.message));
    const follow = () => setPlace(readPlace(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, [source]);
  const view = useMemo(() => index && viewOf(index, source, dark), [index, source, dark]);
  const root = useRef<HTMLElement>(null);
  const where = place.head?.join("-") ?? "";
  useEffect(() => {
    // A page that was followed to begins at its top, and is said.
    scrollTo(0, 0);
    if (where) root.current?.querySelector<HTMLElement>("h1")?.focus();
    document.title = index ? `${where ? `Head ${where} – ` : ""}${index.model || "Atlas"}` : document.title;
  }, [where, index]);
  if (failure) {
    return (
      <div class="failure" role="alert">
        <strong>The atlas could not be opened</strong>
        <p>{failure}</p>
      </div>
    );
  }
  return (
    <main class="headscope atlas" ref={root} data-theme={dark ? "dark" : "light"} data-headscope>
      {view &&
        (place.head ? <HeadPage key={where} view={view} place={place} /> : <MapPage view={view} find={place.find} />)}
    </main>
  );
}

function viewOf(index: AtlasIndex, source: AtlasSource, dark: boolean): AtlasView {
  const maps = bytesOf(index.maps);
  const shapes = marksOf(
    index.patterns.map(({ name }) => name),
    dark,
  );
  const marks = new Map(index.patterns.map(({ name }, at) => [name, shapes[at]]));
  return { index, source, dark, maps, marks, colors: headColors(index, dark) };
}

function useDark(host: HTMLElement): boolean {
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => followSystemTheme(setDark), []);
  useLayoutEffect(() => {
    host.dataset.theme = dark ? "dark" : "light";
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  }, [dark, host]);
  return dark;
}
