import type { ComponentChildren } from "preact";
import { kindColor } from "../../draw/kinds";
import { KindIcon } from "../../parts/KindIcon";
import { headName, headWords as labelWords } from "../../state/evidence";
import { headWords, kindOf } from "../../state/kinds";
import { freeze, type Store } from "../../state/store";

/** What a head does, the same line in every place; what can be done with it is given. */
export function Headline({ store, children }: { store: Store; children?: ComponentChildren }) {
  const { full, kinds, evidence, stack, dark } = store;
  const at = full.value;
  const known = kinds.value;
  const kind = known && kindOf(known, at);
  const { moved, heads } = stack.value;
  // Its weights are those that it would have: nothing of them reaches the output as it did.
  const changed = moved?.changed[Math.floor(at / heads)][at % heads];
  const words = changed
    ? { does: "is changed on purpose", more: "" }
    : known
      ? headWords(known, at)
      : { does: "", more: "" };
  const labels = evidence.value ? labelWords(evidence.value, at) : "";
  const more = [words.more && `here ${words.more}`, labels && `over many texts: ${labels}`].filter(Boolean).join(" · ");
  return (
    <div
      class="headline row wrap"
      data-changed={changed || undefined}
      style={{ "--kind": kind && !changed ? kindColor(kind, dark.value) : undefined }}
    >
      <h2 data-headline>
        {kind && !changed && <KindIcon kind={kind} />}
        Head {headName({ stack: stack.value }, at)} <span>{words.does}</span>
      </h2>
      <div class="headline-tools flex">
        {children}
        <button
          class="quiet muted"
          data-freeze
          title="Compare this head with others side by side (a)"
          onClick={() => freeze(store)}
        >
          + compare
        </button>
      </div>
      <p data-more title={more}>
        {more}
      </p>
    </div>
  );
}
