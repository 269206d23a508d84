import { Fragment } from "preact";
import { type KindName, kindColor } from "../../draw/kinds";
import { isPicture } from "../../draw/patches";
import { KindIcon } from "../../parts/KindIcon";
import { clausesOf, headsByKind } from "../../state/kinds";
import { keepHead } from "../../state/selection";
import type { Store } from "../../state/store";
import { count } from "../../state/words";

/** What all heads do on this text, in one sentence: legend and filter at once. */
export function Story({ store }: { store: Store }) {
  const kinds = store.kinds.value;
  if (!kinds) return <p class="story" aria-busy="true" />;
  const clauses = clausesOf(kinds);
  const heads = clauses.reduce((sum, clause) => sum + clause.count, 0);
  const chosen = store.selection.value.kind;
  const { key } = store.pieceStack.value;
  const tokens = key.count ?? key.labels.length;
  return (
    <p class="story" data-story>
      {kinds.over
        ? `Over ${count(kinds.over.texts)} texts`
        : isPicture(store.stack.value.query)
          ? "On this picture"
          : `On these ${count(tokens)} tokens`}
      , of{" "}
      <strong>
        {count(heads)} {heads === 1 ? "head" : "heads"}
      </strong>{" "}
      {clauses.map(({ kind, count: of, text }, at) => (
        <Fragment key={kind}>
          {at > 0 && at === clauses.length - 1 && "and "}
          <span class="clause-end">
            <button
              class="clause"
              data-kind={kind}
              aria-pressed={chosen === kind}
              style={{ "--kind": kindColor(kind, store.dark.value) }}
              onClick={() => chooseKind(store, kind)}
            >
              <KindIcon kind={kind} />
              {count(of)} {text}
            </button>
            {at === clauses.length - 1 ? "." : at < clauses.length - 2 && ","}
          </span>{" "}
        </Fragment>
      ))}
      {kinds.left > 0 && <small role="status"> loading …</small>}
    </p>
  );
}

/** Only the heads of a kind stand out, and the clearest of them is shown; all again where they did already. */
function chooseKind(store: Store, kind: KindName): void {
  const kinds = store.kinds.value;
  if (store.selection.value.kind === kind || !kinds) {
    store.choose({ kind: null });
    return;
  }
  const first = headsByKind(kinds).find((group) => group.kind === kind)?.heads[0] ?? 0;
  store.select((now) => ({ ...keepHead(now, first, store.stack.value), kind }));
}
