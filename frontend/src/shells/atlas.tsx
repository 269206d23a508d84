import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { followSystemTheme, styledRoot } from "../parts/theme";
import { type AtlasIndex, type AtlasSource, type ComparisonIndex, scriptSource, type TreeIndex } from "../source/atlas";
import { type AtlasPlace, readMetric, readPlace } from "../state/atlas";
import { ComparisonPlace } from "../views/atlas/comparison/BothMaps";
import { HeadPage } from "../views/atlas/HeadPage";
import { TreeHeadPage, TreeMap } from "../views/atlas/headvis/TreePages";
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
  const where = place.head?.join("-") ?? /^#?\/pair\/(.+)$/.exec(fragment)?.[1] ?? "";
  useEffect(() => {
    // A page that was followed to begins at its top, and is said.
    scrollTo(0, 0);
    if (where) root.current?.querySelector<HTMLElement>("h1")?.focus();
    document.title = index ? `${where ? `Head ${where} – ` : ""}${nameOf(index)}` : document.title;
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
      {index && isTree(index) && <TreePlace index={index} source={source} dark={dark} place={place} />}
      {index && isComparison(index) && (
        <ComparisonPlace index={index} source={source} dark={dark} place={place} fragment={fragment} />
      )}
      {index && isAtlas(index) && <AtlasPlaceShown index={index} source={source} dark={dark} place={place} />}
    </main>
  );
}

type PlaceProps<Index> = { index: Index; source: AtlasSource; dark: boolean; place: AtlasPlace };

function AtlasPlaceShown({ index, source, dark, place }: PlaceProps<AtlasIndex>) {
  const view = useMemo(() => viewOf(index, source, dark, ""), [index, source, dark]);
  if (!place.head) return <MapPage view={view} find={place.find} />;
  return <HeadPage key={place.head.join("-")} view={view} place={place} />;
}

/** The same of a tree of HeadVis. */
function TreePlace({ index, source, dark, place }: PlaceProps<TreeIndex>) {
  const view = useMemo(() => ({ index, dark, source }), [index, source, dark]);
  if (!place.head) return <TreeMap view={view} metric={readMetric(location.hash, index)} />;
  return <TreeHeadPage key={place.head.join("-")} view={view} place={place} />;
}

type AnyIndex = AtlasIndex | TreeIndex | ComparisonIndex;

function isTree(index: AnyIndex): index is TreeIndex {
  return "kind" in index && index.kind === "headvis";
}

function isComparison(index: AnyIndex): index is ComparisonIndex {
  return "kind" in index && index.kind === "comparison";
}

function isAtlas(index: AnyIndex): index is AtlasIndex {
  return !("kind" in index);
}

function nameOf(index: AnyIndex): string {
  return isComparison(index) ? index.names.join(" and ") : index.model || "Atlas";
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
