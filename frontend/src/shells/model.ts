import { DEFAULTS } from "../contract/values";
import { mounting } from "../parts/mount";
import { httpModel } from "../source/model";
import { isSame, type Live, liveState } from "../state/live";
import { readAsked, writeAsked } from "../state/liveAddress";
import { pageSelection } from "../state/selection";
import { styles } from "../views/app/styles";
import { liveApp } from "../views/live/LiveBar";
import { liveStyles } from "../views/live/styles";
import { firstAnswer, loadedFacts, randomName } from "./modelStart";
import { type Extra, openPage } from "./show";
import { takeToken } from "./token";

// The page of `headscope serve --model`: all views, and a model that answers.

export { default } from "./modelWidget";

/** The page of a model. */
export async function serve(element: HTMLElement): Promise<void> {
  const model = httpModel("./", takeToken(), randomName());
  let live: Live | undefined;
  await openPage(
    element,
    async () => {
      const facts = await loadedFacts(model, element);
      document.title = facts.name;
      const first = await firstAnswer(model, facts, element, location.hash.slice(1));
      live = liveState(model, facts, first);
      return first.source;
    },
    () => extraOf(live as Live),
  );
}

/** How the page of a model keeps its text and its changes in the address. */
function extraOf(live: Live): Extra {
  const { header } = live.answer.peek().source;
  return {
    mount: mounting(liveApp(live), `${styles}${liveStyles}`),
    // Not those of the first record: a link is read again beside another one.
    defaults: { ...pageSelection(header), ...DEFAULTS, view: "overview" },
    write: () => writeAsked(live.answer.value.asked),
    isStep: live.takeStep,
    follow(fragment, selection) {
      const asked = readAsked(fragment);
      if (!asked || isSame(asked, live.asked.peek())) return false;
      live.go(asked, selection);
      return true;
    },
  };
}
