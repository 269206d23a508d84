import { render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { AnswerPicture } from "../../types/answer";
import { followParentTheme, followSystemTheme, isFramed, reportHeight, styledRoot } from "../parts/theme";
import { counted } from "../state/words";
import { AnswerView } from "../views/answer/AnswerView";

/** The page of an answer. */
function AnswerPage({ picture, host }: { picture: AnswerPicture; host: HTMLElement }) {
  const [around, setAround] = useState(false);
  const [theme, setTheme] = useState(picture.theme);
  useLayoutEffect(() => (isFramed() ? followParentTheme : followSystemTheme)(setAround), []);
  const dark = theme === "auto" ? around : theme === "dark";
  useLayoutEffect(() => {
    host.dataset.theme = dark ? "dark" : "light";
    document.documentElement.style.colorScheme = host.dataset.theme;
  }, [dark, host]);
  useEffect(() => void performance.mark("headscope:first-draw"), []);
  return (
    <main class="headscope" data-headscope data-ready="true" data-theme={dark ? "dark" : "light"}>
      <AnswerView picture={picture} dark={dark}>
        <header>
          <h1>{picture.model}</h1>
          <span class="muted">{`${picture.facts} · ${counted(picture.pieces.length, "token")} in ${counted(picture.parts.length, "part")}`}</span>
          <button class="quiet muted fine-print" data-theme-toggle onClick={() => setTheme(dark ? "light" : "dark")}>
            {dark ? "light" : "dark"}
          </button>
        </header>
      </AnswerView>
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
