import { DEFAULTS, RECORD_QUANTITIES, VIEWS_WITH } from "../../contract/values";
import type { FigureOptions } from "../source/source";
import { recordOf, type Selection } from "./selection";

/** The Python call that opens a page with this selection; its option names are those of PageOptions. */
export function pythonCall(selection: Selection, several: boolean, evidence = false, of = "record"): string {
  // An overview is what a page opens on, and shows the clearest head where none is chosen.
  const { view, heads, tray } = selection;
  const opening = (view === "overview" && heads === null && tray.length === 0) || view === "compare";
  const named = {
    ...(!opening && { view: selection.view }),
    ...(several && { stack: selection.stack }),
    ...(!opening && { layer: selection.layer }),
  };
  const rest = (Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]).filter(
    (name) => literal(selection[name]) !== literal(DEFAULTS[name]),
  );
  const chosen = { ...named, ...Object.fromEntries(rest.map((name) => [name, selection[name]])) };
  const options = Object.entries(chosen).map(([name, value]) => `${name}=${literal(value)}`);
  return `hs.view(${[of, ...(evidence ? ["evidence=found"] : []), ...options].join(", ")})`;
}

/** A value as Python writes it. */
export function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value)
      .map(([name, each]) => `${literal(name)}: ${literal(each)}`)
      .join(", ")}}`;
  }
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** What a figure depends on beside the selection. */
export interface FigureFacts {
  readonly selection: Selection;
  readonly dark: boolean;
  /** Whether the record has more than one stack. */
  readonly several: boolean;
  /** Number of the first head that is shown. */
  readonly head: number;
  /** The query whose neurons are looked at. */
  readonly query: number;
}

/** The options of Python's `figure` that draw what is seen; those that are as usual are left out. */
export function figureOptions({ selection, dark, several, head, query }: FigureFacts): FigureOptions {
  const { view, stack, layer, heads, quantity, filter, hide_special, sinks, words, tray } = selection;
  const [isTray, neurons, masked] = [view === "compare", view === "neuron", VIEWS_WITH.mask.includes(view)];
  const drawn = !isTray && view !== "overview";
  return {
    ...(isTray ? { tray } : { view, ...(several && { stack }) }),
    // The overview frames the chosen heads.
    ...((drawn || (heads && !isTray)) && { layer }),
    ...(neurons ? { head } : !isTray && chosenHeads(heads)),
    ...(drawn && tokensOf(selection, query)),
    ...(words && !neurons && { words }),
    ...(drawn && !neurons && quantity !== "weight" && { quantity }),
    ...(masked && filter !== "all" && { filter }),
    ...(masked && hide_special && { hide_special }),
    ...(masked && !sinks && { sinks }),
    ...(dark && { theme: "dark" }),
  };
}

function chosenHeads(heads: Selection["heads"]): FigureOptions {
  if (heads === null) return {};
  return heads.length === 1 ? { head: heads[0] } : { heads };
}

function tokensOf({ view, query, key }: Selection, neurons: number): FigureOptions {
  const [pinnedQuery, pinnedKey] = [query.slice(0, 1), key.slice(0, 1)];
  if (view === "neuron") return { query: neurons };
  if (view === "text") return pinnedQuery.length > 0 ? { query: pinnedQuery[0] } : one("key", pinnedKey);
  return view === "head" ? { ...one("query", pinnedQuery), ...one("key", pinnedKey) } : {};
}

function one(name: string, tokens: readonly number[]): FigureOptions {
  return tokens.length > 0 ? { [name]: tokens[0] } : {};
}

/** The Python call that draws a figure with these options. */
export function figureCall(options: FigureOptions, record = ""): string {
  const words = Object.entries(options).map(([name, value]) => `${name}=${literal(value)}`);
  if (!RECORD_QUANTITIES.includes(String(options.quantity ?? "weight"))) words.push("quantities=quantities");
  if (((options.tray ?? []) as readonly string[]).some(recordOf)) words.push("beside=beside");
  const of = record && !options.tray ? `beside[${literal(record)}]` : "record";
  return `hs.figure(${of}, ${words.join(", ")})`;
}
