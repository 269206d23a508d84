import { Choice } from "../../parts/Choice";
import { Moon, Sun } from "../../parts/icons";
import { Segmented } from "../../parts/Segmented";
import { isDrawing, usualDrawing } from "../../state/places";
import { chooseStack } from "../../state/selection";
import { compareClearest, type Store } from "../../state/store";
import { recordWords } from "../../state/tray";
import { counted } from "../../state/words";
import { FigureMenu } from "./FigureMenu";
import { More } from "./More";

export function Title({ store }: { store: Store }) {
  const { page } = store;
  return (
    <header>
      <h1>{page.model.name || page.title || "attention"}</h1>
      <span class="facts">{facts(store)}</span>
      {store.root.beside && <RecordChoice store={store} />}
      <StackChoice store={store} />
      <PlaceChoice store={store} />
      <More store={store}>
        <FigureMenu store={store} />
        <button
          class="quiet"
          data-poster-open
          onClick={() => {
            store.poster.value = true;
          }}
        >
          Poster of all heads (f)
        </button>
        <ThemeButton store={store} />
      </More>
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

const PLACES = { overview: "All heads", one: "One head", compare: "Compare" };

function PlaceChoice({ store }: { store: Store }) {
  const { stack, view, selection } = store;
  const kinds = stack.value.kinds !== undefined;
  const there = Object.keys(PLACES).filter(
    (place) => place === "one" || kinds || (place === "compare" && selection.value.tray.length > 0),
  );
  const place = isDrawing(view.value) ? "one" : view.value;
  const open: Readonly<Record<string, () => void>> = {
    overview: () => store.choose({ view: "overview" }),
    one: () => place !== "one" && store.choose({ view: usualDrawing(stack.value) }),
    compare: () => compareClearest(store),
  };
  return (
    <Segmented
      label="Place"
      tabsOf="view"
      options={there}
      labels={PLACES}
      chosen={place}
      onChoose={(chosen) => open[chosen]()}
    />
  );
}

/** Which kind of attention, where a model has several. */
function StackChoice({ store: { page, selection, select } }: { store: Store }) {
  if (page.stacks.length < 2) return null;
  return (
    <Segmented
      label="Kind of attention"
      options={page.stacks.map(({ name }) => name)}
      chosen={selection.value.stack}
      onChoose={(name) => select((now) => chooseStack(now, name, page))}
    />
  );
}

function facts(store: Store): string {
  const { name, layers, heads, query, key } = store.stack.value;
  const [queries, keys] = [query, key].map(({ count, labels }) => count ?? labels.length);
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
    <button class="quiet" data-theme-toggle onClick={toggle}>
      {dark ? <Sun /> : <Moon />} {name}
    </button>
  );
}
