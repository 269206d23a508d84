import type { ComponentChildren } from "preact";
import { CHOICES, VIEWS_WITH } from "../../../contract/values";
import { type Filter, hasSpecial, isPair } from "../../draw/tokens";
import { Check, Choice, OptionChoice, Quiet, Segmented } from "../../parts/controls";
import { Icon } from "../../parts/legend";
import { chooseStack, isDrawing, recordWords, usualDrawing } from "../../state/selection";
import { compareClearest, openDrawing, type Store } from "../../state/store";
import { counted, percent, readable } from "../../state/words";
import { FigureMenu } from "./FigureMenu";

const SHOWS = [
  ["film", "Film through the layers (p)"],
  ["poster", "Poster of all heads (f)"],
] as const;

export function Title({ store }: { store: Store }) {
  const { model, title, note, numbered, unseen } = store.page;
  const positions = numbered && `Some positions have no names and are numbered: ${numbered}`;
  const notes = Object.entries({ note, numbered: positions, unseen }).filter(([, text]) => text);
  return (
    <header>
      <h1>{model.name || title || "attention"}</h1>
      <span class="facts muted">{facts(store)}</span>
      {store.root.beside && <RecordChoice store={store} />}
      <StackChoice store={store} />
      <PlaceChoice store={store} />
      <More store={store}>
        <FigureMenu store={store} />
        {SHOWS.map(([name, words]) => (
          <Quiet key={name} data-show={name} onClick={() => (store.show.value = name)}>
            {words}
          </Quiet>
        ))}
        <ThemeButton store={store} />
      </More>
      <button
        class="icon help-button stack muted"
        data-help-open
        aria-label="Help: keys and marks (?)"
        title="Help: keys and marks (?)"
        onClick={() => (store.help.value = !store.help.value)}
      >
        ?
      </button>
      {notes.map(([name, text]) => (
        <p key={name} class="note muted" {...{ [`data-${name}`]: "" }}>
          {text}
        </p>
      ))}
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

const PLACES = { why: "Why", overview: "All heads", one: "One head", compare: "Compare" };

function PlaceChoice({ store }: { store: Store }) {
  const { stack, view, selection, why, inWhy } = store;
  const kinds = stack.value.kinds !== undefined;
  const there = Object.keys(PLACES).filter((place) => {
    if (place === "why") return why.value;
    return place === "one" || kinds || (place === "compare" && selection.value.tray.length > 0);
  });
  const drawn = isDrawing(view.value) ? "one" : view.value;
  const place = inWhy.value ? "why" : drawn;
  const open: Readonly<Record<string, () => void>> = {
    why: () => (inWhy.value = true),
    overview: () => store.choose({ view: "overview" }),
    one: () => place !== "one" && openDrawing(store, usualDrawing(stack.value)),
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
    <Choice
      label="Kind of attention"
      silent
      name="data-stack-choice"
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
    <Quiet data-theme-toggle onClick={toggle}>
      <Icon of={dark ? "sun" : "moon"} /> {name}
    </Quiet>
  );
}

const FILTER_WORDS: Readonly<Record<Filter, string>> = {
  all: "all tokens",
  aa: "within A",
  ab: "from A to B",
  ba: "from B to A",
  bb: "within B",
};

const ORDER_WORDS = { model: "as they are", ranked: "by what they add", pairs: "frequency pairs", hidden: "hidden" };

/** What changes the numbers: the quantity, words in place of pieces, tokens that are left out; and what is done with all. */
function More({ store, children }: { store: Store; children: ComponentChildren }) {
  const { selection, stack, view, choose, quantities, quantity, hasPieces } = store;
  const now = selection.value;
  const masked = VIEWS_WITH.mask.includes(view.value) && !stack.value.sentences;
  const several = now.query.length > 1 || now.key.length > 1;
  const changed = now.words || now.filter !== "all" || now.hide_special || !now.sinks || now.quantity !== "weight";
  return (
    <details class="more relative" data-changed={changed || undefined}>
      <summary
        class="icon stack muted"
        data-menu
        aria-label="More: what is shown, figures, colours"
        title="What is shown, figures, colours"
      >
        ⋯
      </summary>
      <div class="card stack">
        {quantities.value.length > 1 && !stack.value.sentences && (
          <OptionChoice
            store={store}
            option="quantity"
            label="show"
            title={quantity.value.explanation}
            name="data-quantities"
            options={quantities.value.map(({ name }) => name)}
            words={Object.fromEntries(quantities.value.map(({ name, label }) => [name, label]))}
          />
        )}
        {hasPieces.value && (
          <Check
            name="data-words"
            title="Join the pieces of a word"
            checked={now.words}
            label="whole words"
            onChange={(words) => choose({ words })}
          />
        )}
        {masked && isPair(stack.value) && (
          <OptionChoice
            store={store}
            option="filter"
            label="Which tokens"
            title="A is the first text, B the second: show only the attention within one or between them"
            name="data-filter"
            words={FILTER_WORDS}
          />
        )}
        {masked && hasSpecial(stack.value) && <SpecialChoice store={store} />}
        {masked && <SinkChoice store={store} />}
        {view.value === "text" && !stack.value.sentences && (
          <Choice
            label="colour tokens by what is"
            name="data-direction"
            options={CHOICES.direction}
            chosen={now.direction}
            onChoose={(direction) => choose({ direction, query: [], key: [] })}
          />
        )}
        {view.value === "neuron" && (
          <OptionChoice
            store={store}
            option="neurons"
            label="neurons"
            name="data-neurons"
            options={CHOICES.neurons.filter((order) => order !== "pairs" || store.shown.value?.layer.rotary)}
            words={ORDER_WORDS}
          />
        )}
        {masked && several && <OptionChoice store={store} option="pinned" label="pinned tokens" name="data-pinned" />}
        {children}
      </div>
    </details>
  );
}

function SpecialChoice({ store: { selection, choose, mutedPart } }: { store: Store }) {
  const { hide_special: hidden } = selection.value;
  return (
    <Check
      name="data-hide-special"
      title="Hide tokens such as [CLS] and [SEP], which often take most of the attention"
      checked={hidden}
      label="hide special tokens"
      onChange={(hide_special) => choose({ hide_special })}
    >
      {hidden && <small data-hidden-part>hides {percent(mutedPart.value)}</small>}
    </Check>
  );
}

/** Keys that take most of the mass, and the choice to leave them out. */
function SinkChoice({ store }: { store: Store }) {
  const [sinks, stack] = [store.sinks.value, store.shownStack.value];
  if (!stack || sinks.length === 0) return null;
  const names = sinks.map(({ key, part }) => `${readable(stack.key.labels[key]).text} ${percent(part)}`).join(", ");
  const weights = store.quantity.value.name === "weight";
  return (
    <Check
      name="data-without-sinks"
      title={weights ? "Exclude these keys and renormalise the rest of each row" : "Exclude these keys"}
      checked={!store.keepSinks.value}
      label={`exclude keys that get most (${names})`}
      onChange={(without) => store.choose({ sinks: !without })}
    />
  );
}
