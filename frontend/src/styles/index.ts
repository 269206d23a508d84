import adapt from "./adapt.css";
import page from "./page.css";
import tokens from "./tokens.css";

// What style sheets repeat, and the sign of each part: the build takes them out (tools/css.mjs) and puts them here.
declare const CSS_PARTS: readonly string[] | undefined;
declare const CSS_SIGNS: string;
declare const CSS_LEADS: string;

/** Style sheets with all that was taken out of them put back; parts may have parts. */
function whole(sheet: string): string {
  if (typeof CSS_PARTS === "undefined") return sheet;
  const partAt = (lead: string, sign: string) => CSS_LEADS.indexOf(lead) * CSS_SIGNS.length + CSS_SIGNS.indexOf(sign);
  return sheet.replace(/([?^])(.)/g, (_, lead: string, sign: string) => whole(CSS_PARTS?.[partAt(lead, sign)] ?? ""));
}

/** Styles between those that all views share; what adapts to width and preferences comes last, so that it wins. */
export function withBase(...styles: readonly string[]): string {
  return [page, tokens, ...styles, adapt].map(whole).join("\n");
}
