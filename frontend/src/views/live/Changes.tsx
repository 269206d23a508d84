import { useSignal } from "@preact/signals";
import type { ModelChange } from "../../../types/live";
import { Check, Quiet } from "../../parts/controls";
import { CHANGE_WORDS, changeOf, changeWords, keyOfChange, type Subject, subjectOf } from "../../state/changes";
import type { Store } from "../../state/store";
import { quoted, readable } from "../../state/words";
import type { LiveParts } from "./LiveBar";

/** What is done to the model, each a switch: a click undoes it. */
export function Switches({ live, store }: LiveParts) {
  const { changes } = live.asked.value;
  const { stacks } = store.page;
  const subject = subjectOf(store);
  const silence = changeOf("zero", { ...subject, query: null, key: null }, { several: stacks.length > 1 });
  return (
    <div class="live-changes row wrap" role="group" aria-label="Changes" data-changes>
      <Struck changes={changes} store={store} />
      {changes.map((change) => {
        const stack = stacks.find(({ name }) => name === change.stack) ?? stacks[0];
        const words = changeWords(change, stack, stacks.length > 1);
        return (
          <button
            key={keyOfChange(change)}
            class="live-change"
            data-change={words}
            aria-pressed="true"
            title={`${CHANGE_WORDS[change.do][1]}. Click to undo`}
            onClick={() => live.toggle(change)}
          >
            <bdi>{words}</bdi> <span aria-hidden="true">×</span>
          </button>
        );
      })}
      {!changes.some((change) => keyOfChange(change) === keyOfChange(silence)) && (
        <Quiet
          data-silence
          title={`${CHANGE_WORDS.zero[1]} (x, or Alt-click on a head)`}
          onClick={() => live.toggle(silence)}
        >
          + silence {subjectWords({ ...subject, query: null, key: null }, store).toLowerCase()} (x)
        </Quiet>
      )}
      {changes.length > 1 && (
        <Quiet data-undo-all onClick={live.undoAll}>
          undo all
        </Quiet>
      )}
      {changes.length > 0 && (
        <code class="live-python muted" data-live-python>
          {live.answer.value.opening.python}
        </code>
      )}
    </div>
  );
}

/**
 * Heads that are changed, dashed wherever they stand, and those that are silenced empty. As a style, so that no map has
 * to know of changes: the views are the same where no model is.
 */
function Struck({ changes, store }: { changes: readonly ModelChange[]; store: Store }) {
  const { stack } = store;
  const here = (change: ModelChange) => change.do !== "cut" && (change.stack ?? stack.value.name) === stack.value.name;
  const named = (of: readonly ModelChange[]) =>
    of.flatMap(({ layer, heads }) =>
      (heads ?? stack.value.head_numbers).map((head) => `[data-tile="${layer}-${head}"]`),
    );
  const changed = named(changes.filter(here));
  const silent = named(changes.filter((change) => here(change) && change.do === "zero" && !change.queries));
  if (changed.length === 0) return null;
  const words = silent.map((name) => `${name}::after`).join();
  return (
    <style>
      {`${changed.join()}{outline:1.5px dashed var(--muted);outline-offset:-2px}`}
      {silent.length > 0 &&
        `${silent.join()}{background:var(--card)!important;overflow:hidden}${words}{content:"off";color:var(--muted);font-size:10px}`}
    </style>
  );
}

const KINDS = ["zero", "uniform", "mean", "cut", "patch"] as const;
/** Changes that need another text. */
const WITH_TEXT: readonly ModelChange["do"][] = ["mean", "patch"];
const ASKED_FOR = {
  mean: "texts to take the mean over, one a line",
  patch: "another text, with as many tokens",
} as const;

/** Buttons that change the heads or the tokens that are looked at. */
export function ChangeMaker({ live, store }: LiveParts) {
  const subject = subjectOf(store);
  const asking = useSignal<"mean" | "patch" | null>(null);
  const text = useSignal("");
  const onlyHere = useSignal(false);
  const make = (kind: ModelChange["do"], from?: string) =>
    live.toggle(
      changeOf(kind, subject, {
        several: store.page.stacks.length > 1,
        atTokens: onlyHere.value,
        ...(from !== undefined && { from }),
      }),
    );
  return (
    <div class="live-maker row wrap" role="group" aria-label="Change what is looked at" data-change-maker>
      <span class="live-subject" data-subject>
        {subjectWords(subject, store)}
      </span>
      {KINDS.map((kind) => (
        <Quiet
          key={kind}
          data-do={kind}
          disabled={kind === "cut" && !subject.key}
          title={doTitle(kind)}
          aria-expanded={WITH_TEXT.includes(kind) ? asking.value === kind : undefined}
          onClick={() => {
            if (kind === "mean" || kind === "patch") asking.value = asking.value === kind ? null : kind;
            else make(kind);
          }}
        >
          {CHANGE_WORDS[kind][0]}
          {WITH_TEXT.includes(kind) && " …"}
        </Quiet>
      ))}
      {subject.query && (
        <Check
          name="data-only-here"
          label="only at this token"
          title="Change the heads only where the pinned token looks; a cut always is at the pinned tokens"
          checked={onlyHere.value}
          onChange={(checked) => (onlyHere.value = checked)}
        />
      )}
      {asking.value && (
        <form
          class="live-from flex top"
          onSubmit={(event) => {
            event.preventDefault();
            if (asking.value && text.value.trim()) make(asking.value, text.value.trim());
            asking.value = null;
          }}
        >
          <textarea
            rows={asking.value === "mean" ? 3 : 1}
            data-from
            aria-label={ASKED_FOR[asking.value]}
            placeholder={ASKED_FOR[asking.value]}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          <button class="live-go" data-from-go>
            {CHANGE_WORDS[asking.value][0]}
          </button>
        </form>
      )}
    </div>
  );
}

function doTitle(kind: ModelChange["do"]): string {
  const quick =
    kind === "zero" ? " (x, or Alt-click on a head)" : kind === "cut" ? " (Alt-click on a token or cell)" : "";
  const first = kind === "cut" ? "Pin the token that is looked at, and perhaps one that looks: " : "";
  return `${first}${CHANGE_WORDS[kind][1]}${quick}`;
}

/** "Head 1-8", "Head 1-8, “it” → “dog”" */
function subjectWords({ layer, heads, query, key }: Subject, store: Store): string {
  const { query: queries, key: keys } = store.pieceStack.value;
  const list = heads?.map((head) => `${layer}-${head}`) ?? [];
  const many = list.length > 4 ? `${list.length} heads of layer ${layer}` : `Heads ${list.join(", ")}`;
  const of = heads === null ? `All heads of layer ${layer}` : list.length === 1 ? `Head ${list[0]}` : many;
  const words = (places: readonly number[] | null, labels: readonly string[]) =>
    places ? quoted(places.map((at) => readable(labels[at] ?? "", 16).text).join(" ")) : "all";
  if (!query && !key) return of;
  return `${of}, ${words(query, queries.labels)} → ${words(key, keys.labels)}`;
}
