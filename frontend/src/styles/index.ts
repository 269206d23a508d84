import adapt from "./adapt.css";
import page from "./page.css";
import tokens from "./tokens.css";

// What style sheets repeat, and the sign of each part: the build takes them out (tools/css.mjs) and puts them here.
declare const CSS_PARTS: string | undefined;
declare const CSS_SIGNS: string;
declare const CSS_SHORT: string;

/** Style sheets with all that was taken out of them put back; parts may have parts. */
export function whole(sheet: string): string {
  if (typeof CSS_PARTS === "undefined") return sheet;
  const parts = CSS_PARTS.split("|");
  const partAt = (code: string) =>
    code[1]
      ? CSS_SHORT.length + (code[0] === "?" ? CSS_SIGNS.length : 0) + CSS_SIGNS.indexOf(code[1])
      : CSS_SHORT.indexOf(code);
  return sheet.replace(/[?^].|[A-Z$&_~']/g, (code) => {
    const part = parts[partAt(code)];
    // Some letters stand for themselves.
    return part === undefined ? code : whole(part);
  });
}

/** Styles between those that all views share; what adapts to width and preferences comes last, so that it wins. */
export function withBase(...styles: readonly string[]): string {
  return [page, tokens, ...styles, adapt].map(whole).join("\n");
}
