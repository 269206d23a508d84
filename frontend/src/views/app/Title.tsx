import { CHOICES, VIEWS_WITH } from "../../contract/values";
import { Choice } from "../../parts/Choice";
import { Moon, Sun } from "../../parts/icons";
import { Segmented } from "../../parts/Segmented";
import type { View } from "../../state/selection";
import type { Store } from "../../state/store";
import { recordWords } from "../../state/tray";
import { counted } from "../../state/words";
import { FigureMenu } from "./FigureMenu";

export function Title({ store }: { store: Store }) {
  const { page } = store;
  return (
    <header>
      <h1>{page.model.name || page.title || "attention"}</h1>
      <span class="facts">{facts(store)}</span>
      {store.root.beside && <RecordChoice store={store} />}
      <ViewChoice store={store} />
      <button
        class="icon help-button"
        data-help-open
        aria-label="Help: keys and marks (?)"
        title="Help: keys and marks (?)"
        onClick={() => {
          store.help.value = !store.help.value;
        }}
      >
        ?
      </button>
      <FigureMenu store={store} />
      <ThemeButton store={store} />
      {page.note && (
        <p class="note" data-note>
          {page.note}
        </p>
      )}
      {page.numbered && (
        <p class="note" data-numbered>
          Some positions have no names and are numbered: {page.numbered}
        </p>
      )}
      {page.unseen && (
        <p class="note" data-unseen>
          {page.unseen}
        </p>
      )}
    </header>
  );
}

/** Which record is shown, where there are several; its own numbers and all of its views. */
function RecordChoice({ store: { root, record, choose } }: { store: Store }) {
  const names = ["", ...Object.keys(root.beside ?? {})];
  return (
    <Choice
      label="record"
      name="data-record"
      options={names}
      words={Object.fromEntries(names.map((name) => [name, recordWords(root, name) || "a"]))}
      chosen={record}
      onChoose={(shown_record) => choose({ shown_record, query: [], key: [] })}
    />
  );
}

function ViewChoice({ store: { page, stack, view, selection, select } }: { store: Store }) {
  const { length } = selection.value.tray;
  const there = (name: View) => {
    if (name === "compare") return length > 0;
    return VIEWS_WITH.evidence.includes(name) ? page.evidence : name !== "overview" || stack.value.kinds;
  };
  return (
    <Segmented
      label="View"
      tabsOf="view"
      options={CHOICES.view.filter(there)}
      labels={{ compare: `compare ${length}` }}
      chosen={view.value}
      onChoose={(chosen) => select((now) => ({ ...now, view: chosen as View }))}
    />
  );
}

function facts(store: Store): string {
  const { name, layers, heads, query, key } = store.stack.value;
  const [queries, keys] = [query.labels.length, key.labels.length];
  const tokens =
    queries === keys && name !== "cross" ? counted(queries, "token") : `${queries} → ${counted(keys, "token")}`;
  return [counted(layers.length, "layer"), counted(heads, "head"), tokens].join(" · ");
}

function ThemeButton({ store }: { store: Store }) {
  const dark = store.dark.value;
  const name = dark ? "Light colours" : "Dark colours";
  const toggle = () => {
    const theme = dark ? "light" : "dark";
    const system = store.systemDark.value ? "dark" : "light";
    store.choose({ theme: theme === system ? "auto" : theme });
  };
  return (
    <button class="icon" data-theme-toggle aria-label={name} title={name} onClick={toggle}>
      {dark ? <Sun /> : <Moon />}
    </button>
  );
}
