import type { Live } from "../../state/live";
import { chooseStack, fitHeads } from "../../state/selection";
import { percent, quoted, readable } from "../../state/words";
import type { WhyLine } from "../why/place";
import { WhyView } from "../why/WhyView";
import type { LiveParts } from "./LiveBar";

type WhyButtonProps = { live: Live; at: number; id: number; label: string };

/** Asks why a token was said after the row at a place. */
export function WhyButton({ live, at, id, label }: WhyButtonProps) {
  const name = `Why ${quoted(readable(label, 24).text)}?`;
  return (
    <button
      class="quiet muted"
      data-why={id}
      title={`${name} Which heads made the model say it, and from which words`}
      aria-label={name}
      disabled={live.busy.value}
      onClick={() => void live.why.start(at, id)}
    >
      why?
    </button>
  );
}

/** The way back from a token that was asked about; a click on a line opens its head, and cuts the line. */
export function Why({ live, store }: LiveParts) {
  const { running, progress, problem, shown, stop, close } = live.why;
  const now = shown.value;
  if (!running.value && !now && !problem.value) return null;
  const cut = ({ stack, layer, link: { head, query, key } }: WhyLine) => {
    const several = store.page.stacks.length > 1;
    store.select((selection) => {
      const chosen = several ? chooseStack(selection, stack, store.page) : selection;
      const own = store.page.stacks.find(({ name }) => name === chosen.stack) ?? store.pieceStack.peek();
      return { ...chosen, layer, heads: fitHeads([head], own) };
    });
    live.toggle({ do: "cut", layer, heads: [head], queries: [query], keys: [key], ...(several && { stack }) });
  };
  return (
    <section class="live-why slim" aria-label="Why this word" data-live-why={running.value ? "running" : "ready"}>
      {running.value ? (
        <p class="live-keep row wrap">
          Following the answer <progress value={progress.value} aria-label="How far it got" />
          <small>{percent(progress.value)}</small>
          <button class="quiet muted" data-why-cancel onClick={stop}>
            cancel
          </button>
        </p>
      ) : (
        <small role="alert">{problem.value}</small>
      )}
      {now && (
        <WhyView key={now.picture.title} picture={now.picture} dark={store.dark.value} onLine={cut}>
          <header class="row apart">
            <h2>{now.picture.title}</h2>
            <button class="quiet muted" data-why-close onClick={close}>
              close
            </button>
          </header>
        </WhyView>
      )}
    </section>
  );
}
