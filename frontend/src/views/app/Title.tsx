import { Moon, Sun } from "../../parts/icons";
import { Segmented } from "../../parts/Segmented";
import { VIEWS, type View } from "../../state/selection";
import type { Store } from "../../state/store";
import { counted } from "../../state/words";
import { FigureMenu } from "./FigureMenu";

export function Title({ store }: { store: Store }) {
  const { page } = store;
  return (
    <header>
      <h1>{page.model.name || page.title || "attention"}</h1>
      <span class="facts">{facts(store)}</span>
      <ViewChoice store={store} />
      <FigureMenu store={store} />
      <ThemeButton store={store} />
      {page.note && (
        <p class="note" data-note>
          {page.note}
        </p>
      )}
    </header>
  );
}

function ViewChoice({ store: { page, view, select } }: { store: Store }) {
  return (
    <Segmented
      label="View"
      options={page.evidence ? VIEWS : VIEWS.filter((name) => name !== "scatter")}
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
    store.select((now) => ({ ...now, theme: theme === system ? "auto" : theme }));
  };
  return (
    <button type="button" class="icon" data-theme-toggle aria-label={name} title={name} onClick={toggle}>
      {dark ? <Sun /> : <Moon />}
    </button>
  );
}
