import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { AnswerPicture } from "../../types/answer";
import type { WhyPicture } from "../../types/why";
import { followParentTheme, followSystemTheme, isFramed, reportHeight, styledRoot } from "../parts/theme";
import { counted } from "../state/words";
import { AnswerView } from "../views/answer/AnswerView";
import { WhyView } from "../views/why/WhyView";

/** The page of an answer, or of why a word was said. */
function AnswerPage({ picture, host }: { picture: AnswerPicture | WhyPicture; host: HTMLElement }) {
  const [around, setAround] = useState(false);
  const pinned = useSignal(null);
  const [theme, setTheme] = useState(picture.theme);
  useLayoutEffect(() => (isFramed() ? followParentTheme : followSystemTheme)(setAround), []);
  const dark = theme === "auto" ? around : theme === "dark";
  useLayoutEffect(() => {
    host.dataset.theme = dark ? "dark" : "light";
    document.documentElement.style.colorScheme = host.dataset.theme;
  }, [dark, host]);
  useEffect(() => void performance.mark("headscope:first-draw"), []);
  const isWhy = "sizes" in picture;
  const facts = isWhy
    ? `${picture.model} · ${counted(picture.tokens.length, "token")}`
    : `${picture.facts} · ${counted(picture.pieces.length, "token")} in ${counted(picture.parts.length, "part")}`;
  const header = (
    <header>
      <h1 style={isWhy ? { fontSize: "22px" } : {}}>{isWhy ? picture.title : picture.model}</h1>
      <span class="muted">{facts}</span>
      <button class="quiet muted fine-print" data-theme-toggle onClick={() => setTheme(dark ? "light" : "dark")}>
        {dark ? "light" : "dark"}
      </button>
    </header>
  );
  return (
    <main class="headscope" data-headscope data-ready="true" data-theme={dark ? "dark" : "light"}>
      {isWhy ? (
        <WhyView picture={picture} dark={dark} pinned={pinned}>
          {header}
        </WhyView>
      ) : (
        <AnswerView picture={picture} dark={dark}>
          {header}
        </AnswerView>
      )}
    </main>
  );
}

const element = document.getElementById("headscope");
const data = document.getElementById("headscope-page")?.textContent;
if (element && data) {
  if (isFramed()) reportHeight(element);
  else element.style.minHeight = "100vh";
  const root = styledRoot(element, CSS_TEXT);
  render(<AnswerPage picture={JSON.parse(data)} host={element} />, root);
}
