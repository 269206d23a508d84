import { type Selection, USUAL } from "./selection";

/** The Python call that opens a page with this selection; its option names are those of PageOptions. */
export function pythonCall(selection: Selection, several: boolean, evidence = false, of = "record"): string {
  const named = { view: selection.view, ...(several && { stack: selection.stack }), layer: selection.layer };
  const rest = (Object.keys(USUAL) as (keyof typeof USUAL)[]).filter(
    (name) => literal(selection[name]) !== literal(USUAL[name]),
  );
  const chosen = { ...named, ...Object.fromEntries(rest.map((name) => [name, selection[name]])) };
  const options = Object.entries(chosen).map(([name, value]) => `${name}=${literal(value)}`);
  return `hs.view(${of}, ${evidence ? "evidence=found, " : ""}${options.join(", ")})`;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
