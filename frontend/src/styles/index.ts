import adapt from "./adapt.css";
import page from "./page.css";
import tokens from "./tokens.css";

/** Styles between those that all views share; what adapts to width and preferences comes last, so that it wins. */
export function withBase(...styles: readonly string[]): readonly string[] {
  return [page, tokens, ...styles, adapt];
}
