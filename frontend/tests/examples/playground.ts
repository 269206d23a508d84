import { mountApp } from "../../src/shells/show";
import { EXAMPLES } from "./named";
import { exampleSource } from "./page";

// One example by its name in the address, as #pair; all of them one below the other where there is none.

const HEIGHT = 460;

function show(name: string): HTMLElement {
  const section = document.createElement("section");
  const heading = document.createElement("h2");
  const link = document.createElement("a");
  link.href = `#${name}`;
  link.textContent = name;
  const words = document.createElement("span");
  words.textContent = ` ${EXAMPLES[name].title}`;
  heading.append(link, words);
  const place = document.createElement("div");
  place.id = name;
  section.append(heading, place);
  const { make, selection } = EXAMPLES[name];
  mountApp(place, { source: exampleSource(make()), selection, height: HEIGHT });
  return section;
}

function showAll(): void {
  const name = decodeURIComponent(location.hash.slice(1));
  const names = name in EXAMPLES ? [name] : Object.keys(EXAMPLES);
  document.body.replaceChildren(...names.map(show));
}

addEventListener("hashchange", showAll);
showAll();
