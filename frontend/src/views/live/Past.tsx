import { changeWords } from "../../state/changes";
import { isSame } from "../../state/live";
import type { LiveParts } from "./LiveBar";

/** What was asked in this tab, the newest first: a click goes back to it. */
export function Past({ live, store }: LiveParts) {
  const now = live.answer.value.asked;
  const { stacks } = store.page;
  return (
    <ol class="live-past" aria-label="Asked before">
      {live.history.value.map((asked, at) => {
        const { text, text_b: second, messages } = asked.input;
        const shown = text ?? messages?.map(({ content }) => content).join(" / ") ?? "a picture or sound";
        const words = asked.changes.map((change) => changeWords(change, undefined, stacks.length > 1));
        return (
          <li key={at}>
            <button
              class="quiet"
              data-past={at}
              aria-current={isSame(asked, now) ? "true" : undefined}
              onClick={() => live.go(asked)}
            >
              <bdi>{second ? `${shown} | ${second}` : shown}</bdi>
              {words.length > 0 && <small> · {words.join(", ")}</small>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}
