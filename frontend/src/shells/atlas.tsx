import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { followSystemTheme, styledRoot } from "../parts/theme";
import { type AnyIndex, type AtlasSource, scriptSource } from "../source/atlas";
import { type AtlasPlace, readPlace } from "../state/atlas";
import { ComparisonPlace } from "../views/atlas/Comparison";
import { HeadPage } from "../views/atlas/HeadPage";
import { MapPage } from "../views/atlas/MapPage";
import { useLoaded, viewOf } from "../views/atlas/parts";

/** The page of an atlas: the map of all heads, or one head, as the address says. */
function AtlasApp({ source, host }: { source: AtlasSource; host: HTMLElement }) {
  const [index, failure] = useLoaded(() => source.read<AnyIndex>("index"), [source]);
  const [fragment, setFragment] = useState(location.hash);
  const place = useMemo(() => readPlace(fragment), [fragment]);
  const dark = useDark(host);
  useEffect(() => {
    const follow = () => setFragment(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const root = useRef<HTMLElement>(null);
  const where = place.head?.join("-") ?? "";
  useEffect(() => {
    // A page that was followed to begins at its top, and is said.
    scrollTo(0, 0);
    if (where) root.current?.querySelector<HTMLElement>("h1")?.focus();
    if (!index) return;
    const name = index.kind === "comparison" ? index.names.join(" and ") : index.model || "Atlas";
    document.title = where ? `Head ${where} – ${name}` : name;
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
      {index && <Place index={index} source={source} dark={dark} place={place} />}
    </main>
  );
}

type PlaceProps = { index: AnyIndex; source: AtlasSource; dark: boolean; place: AtlasPlace };

/** What an address leads to in an atlas, or in two of them. */
function Place({ index, source, dark, place }: PlaceProps) {
  const view = useMemo(
    () => (index.kind === undefined ? viewOf(index, source, dark, "") : null),
    [index, source, dark],
  );
  const key = place.head?.join("-");
  if (index.kind === "comparison") return <ComparisonPlace index={index} source={source} dark={dark} place={place} />;
  if (!view) return null;
  return key ? <HeadPage key={key} view={view} place={place} /> : <MapPage view={view} find={place.find} />;
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

// An atlas in a folder of files: what it draws comes in scripts beside it.

const element = document.getElementById("headscope");
if (element) {
  element.style.minHeight = "100vh";
  render(<AtlasApp source={scriptSource(document)} host={element} />, styledRoot(element, CSS_TEXT));
}
