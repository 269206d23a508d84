import { DEFAULTS } from "../contract/values";
import type { Selection } from "./selection";

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
